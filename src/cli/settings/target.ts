// Parses where the app is: a port, host and port, a URL, a unix socket, or a folder.

import type { OriginOptions } from '../../client/options.ts'
import type { HttpServiceOptions, ServiceConfig } from '../../config/service.ts'
import { type RouteExtras, splitTarget, withHost } from '../../config/target.ts'
import { optionInvalid } from '../../errors.ts'
import { formatUrl, isLoopback, parseHost, unusedPart } from '../../names.ts'
import { unknownWord } from '../words.ts'
import { parsePort, parsePortRange } from './flags.ts'

export interface Target {
  /** The options for TunnelClient. */
  readonly options:
    | { readonly port: number; readonly host: string }
    | ({ readonly url: string } & AppTls)
    | { readonly unix: string }
    | { readonly folder: string; readonly spa: boolean }
  /** The address: `http://localhost:3000`, or the path of a unix socket or folder. */
  readonly label: string
  /** The short address: `:3000` on this machine, otherwise the label. */
  readonly shortLabel: string
  /** The address to dial to check whether anything listens, or the folder to look for. */
  readonly dial:
    | { readonly host: string; readonly port: number }
    | { readonly unix: string }
    | { readonly folder: string }
  /** The URL for requests of this program. Unix sockets and folders have none. */
  readonly url: string | undefined
}

export type AppTls = Pick<OriginOptions, 'appInsecure' | 'appCa' | 'appServerName'>

export interface TargetFlags {
  /** The positional argument: `3000`, `host:3000`, `https://localhost:3000`, `unix:/run/app.sock`. */
  readonly positional: string | undefined
  readonly port: number | undefined
  readonly host: string | undefined
  readonly tls?: AppTls
  /** A folder in place of all the above. */
  readonly folder?: string | undefined
  readonly isSpa?: boolean
}

/** The app for requests below a path. */
export type RouteFlag = Target['options'] & RouteExtras

const DEFAULT_PORT = 3_000

/** A service for a raw tunnel: `5432`, `host:5432`, `unix:/path`. */
export interface Service extends Target {
  readonly options: { readonly port: number; readonly host: string } | { readonly unix: string }
}

export function parseService(given: string): Service {
  const text = withHost(given)
  if (text.startsWith('unix:')) return unixTarget(text.slice('unix:'.length))
  if (/^\d+$/.test(text)) return rawTarget(parsePort(text, '', 1), 'localhost')
  if (text.includes(':') && !text.includes('://') && !TWO_PORTS.test(text)) {
    const { hostname, port } = parseHost(text)
    if (port !== undefined) return rawTarget(port, hostname)
  }
  refuseTwoPorts(text)
  const address = /^(?:tcp|udp|tls):\/\/(.*?)\/?$/i.exec(given)?.[1]
  const hint = address === undefined ? '' : ` Write ${address} alone.`
  throw optionInvalid(`"${given}" is neither a port, a host with a port nor unix:/path.${hint}`)
}

/** Parses `27015-27030` or `host:27015-27030` as a service for each port, or a single service. */
export function parseServices(text: string): readonly Service[] {
  const [, before = '', range = ''] = /^(.*:)?(\d+-\d+)$/.exec(text) ?? []
  if (range === '') return [parseService(text)]
  return parsePortRange(range, 'the port').map(port => parseService(`${before}${port}`))
}

/** Returns a target that need not use HTTP. */
function rawTarget(port: number, host: string): Service {
  const { label, shortLabel, dial } = portTarget(port, host)
  const plain = (text: string) => text.replace('http://', '')
  return { options: { port, host }, label: plain(label), shortLabel: plain(shortLabel), dial, url: undefined }
}

export function parseTarget({ positional: given, port, host, tls, folder, isSpa }: TargetFlags): Target {
  const positional = given && withHost(given)
  if (folder !== undefined) return folderTarget(folder, isSpa ?? false)
  if (positional === undefined) return portTarget(port ?? DEFAULT_PORT, host ?? 'localhost')
  if (/^\d+$/.test(positional)) return portTarget(parsePort(positional, '', 1), host ?? 'localhost')
  if (/^https?:\/\//i.test(positional)) return urlTarget(positional, tls)
  if (positional.startsWith('unix:')) return unixTarget(positional.slice('unix:'.length))
  refuseTwoPorts(positional)
  const [, raw = '', service = ''] = /^(tcp|udp|tls):\/\/(.*?)\/?$/i.exec(positional) ?? []
  if (raw !== '')
    throw optionInvalid(`"${positional}" is not HTTP. Write: localtunnels ${raw.toLowerCase()} ${service}.`)
  if (positional.includes(':')) {
    const parts = parseHost(positional)
    if (parts.port !== undefined) return portTarget(parts.port, parts.hostname)
  }
  if (/^\.{0,2}[/\\]|^\.{1,2}$/.test(positional)) {
    throw optionInvalid(`A folder is served with --serve ${positional}.`)
  }
  throw unknownWord(positional)
}

/** A pattern for ports as containers publish them: the port of this machine, and the one inside. */
const TWO_PORTS = /^(\d+):\d+$/

function refuseTwoPorts(text: string): void {
  const [, port] = TWO_PORTS.exec(text) ?? []
  if (port !== undefined)
    throw optionInvalid(`"${text}" has two ports. Write the one of this machine alone: ${port}.`)
}

/**
 * Parses `/api=8080`, `/ws=https://localhost:3001`, `/rpc=h2c://localhost:50051`, `/a=8080,strip-prefix=/a` into the
 * `routes` of a tunnel. `undefined` if there are none.
 */
export function parseRoutes(
  given: readonly string[],
  tls: AppTls = {},
): Record<string, RouteFlag> | undefined {
  if (given.length === 0) return undefined
  const routes = new Map<string, RouteFlag>()
  for (const text of given) {
    const at = text.indexOf('=')
    const path = text.slice(0, Math.max(at, 0))
    if (!path.startsWith('/'))
      throw optionInvalid(`--route "${text}" is not a path and an app, such as /api=8080.`)
    if (routes.has(path)) throw optionInvalid(`--route: ${path} is given twice.`)
    const { extras, address } = splitTarget(text.slice(at + 1))
    const { options } = parseTarget({
      positional: address,
      port: undefined,
      host: undefined,
      tls,
    })
    routes.set(path, { ...options, ...extras })
  }
  return Object.fromEntries(routes)
}

export function serviceTarget({ kind, options }: ServiceConfig): Target {
  if (kind === 'connect')
    return { ...rawTarget(options.port, 'localhost'), label: `private service ${options.name}` }
  const { port, host = 'localhost' } = options
  if (kind === 'http' || port === undefined) return addressTarget(options)
  return rawTarget(port, parseHost(host).hostname)
}

/** Returns the target of a service or a route, without keys that its kind does not have. */
export function addressTarget(address: Partial<HttpServiceOptions>): Target {
  const { port, host = 'localhost', unix, folder, spa = false, url = '' } = address
  if (unix !== undefined) return unixTarget(unix)
  if (folder !== undefined) return folderTarget(folder, spa)
  if (port !== undefined) return portTarget(port, host)
  return urlTarget(url, appTlsOf(address))
}

function portTarget(port: number, hostFlag: string): Target {
  const { hostname } = parseHost(hostFlag)
  const url = formatUrl({ hostname, port })
  return {
    options: { port, host: hostname },
    label: url,
    shortLabel: isLoopback(hostname) ? `:${port}` : url,
    dial: { host: hostname, port },
    url,
  }
}

export function appTlsOf({ appInsecure, appCa, appServerName }: AppTls): AppTls {
  return {
    ...(appInsecure !== undefined && { appInsecure }),
    ...(appCa !== undefined && { appCa }),
    ...(appServerName !== undefined && { appServerName }),
  }
}

function urlTarget(text: string, tls: AppTls = {}): Target {
  // `URL.parse` would not do, because Node 20 does not have it.
  if (!URL.canParse(text)) throw optionInvalid(`"${text}" is not a URL.`)
  const url = new URL(text)
  const more = unusedPart(url)
  if (more !== undefined) {
    const message = `The URL of the app has ${more}, and none is used: give ${url.origin}.`
    throw optionInvalid(message)
  }
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  // On this machine there is no network in between, and the certificate of a dev server is rarely trusted.
  const isUnverified = isLoopback(hostname) && tls.appCa === undefined
  return {
    options: {
      url: url.origin,
      ...(url.protocol === 'https:' && { ...(isUnverified && { appInsecure: true }), ...tls }),
    },
    label: url.origin,
    shortLabel: isLoopback(hostname) ? `:${port}` : url.origin,
    dial: { host: hostname, port },
    url: url.origin,
  }
}

function unixTarget(path: string): Service {
  if (path === '') throw optionInvalid('unix: needs the path of a socket.')
  return { options: { unix: path }, label: path, shortLabel: path, dial: { unix: path }, url: undefined }
}

function folderTarget(folder: string, spa: boolean): Target {
  const label = folder.replace(/\/*$/, '/')
  return { options: { folder, spa }, label, shortLabel: label, dial: { folder }, url: undefined }
}
