// Makes the app's origin from the options.

import { optionInvalid } from '../../errors.ts'
import { isValidPort, noPort, parseHost, unusedPart } from '../../names.ts'
import type { Address, Dial, TlsOptions } from '../../socket.ts'
import { positive } from '../limits.ts'
import type { HttpTunnelOptions, OriginOptions } from '../options.ts'
import { AddressOrigin } from './address.ts'
import { LateOrigin } from './late.ts'
import type { Origin } from './origin.ts'

/** Makes the origin of an app that has no address. */
export type OwnOrigin = (options: OriginOptions) => Origin | undefined

/** Makes an origin. Throws `OPTION_INVALID`. */
export function originOf(
  options: OriginOptions,
  dial: Dial,
  ownOrigin: OwnOrigin,
  protocol?: HttpTunnelOptions['protocol'],
): Origin {
  const { port, url, unix, fetch, folder, spa, later, websocket } = options
  if (websocket !== undefined && fetch === undefined)
    throw optionInvalid('websocket belongs to fetch, which is not given.')
  if ([port, url, unix, fetch, folder, later || undefined].filter(one => one !== undefined).length !== 1) {
    const text = 'Exactly one of port, url, unix, fetch, folder and later says where the app is.'
    throw optionInvalid(text)
  }
  if (url === undefined) refuseTls(options)
  if (later) return new LateOrigin()
  if (spa !== undefined && folder === undefined)
    throw optionInvalid('spa belongs to folder, which is not given.')
  if (fetch === undefined && folder === undefined)
    return addressOrigin(options, dial, true, protocol === 'h2')
  const own = ownOrigin(options)
  if (own === undefined) throw optionInvalid('This client has no part for fetch and folder.')
  return own
}

export function addressOrigin(options: OriginOptions, dial: Dial, isHttp = false, isHttp2 = false): Origin {
  const connectTimeoutMs = positive('originConnectTimeoutMs', options.originConnectTimeoutMs ?? 10_000)
  const plain = originAddress(options)
  const address = isHttp2 && plain.tls ? { ...plain, tls: { ...plain.tls, protocol: 'h2' } } : plain
  return new AddressOrigin({ address, connectTimeoutMs, dial, isHttp })
}

function originAddress(options: OriginOptions): Address {
  const { port, host = 'localhost', url, unix } = options
  if (unix !== undefined) return { unix }
  if (url !== undefined) {
    const parsed = parseUrl(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw optionInvalid(`"${url}" is not an http:// or https:// URL.`)
    }
    const more = unusedPart(parsed)
    if (more !== undefined) {
      const message = `The URL of the app has ${more}, and none is used: give ${parsed.origin}.`
      throw optionInvalid(message)
    }
    const isSecure = parsed.protocol === 'https:'
    if (!isSecure) refuseTls(options)
    return {
      host: parsed.hostname.replace(/^\[|\]$/g, ''),
      port: parsed.port === '' ? (isSecure ? 443 : 80) : Number(parsed.port),
      ...(isSecure && { tls: tlsOf(options) }),
    }
  }
  if (port === undefined || !isValidPort(port)) throw noPort(`port ${port}`)
  return { host: parseHost(host).hostname, port }
}

const TLS_OPTIONS = ['appInsecure', 'appCa', 'appServerName'] as const

/** Throws if TLS options are set for an app without TLS, because protection must not be dropped silently. */
function refuseTls(options: OriginOptions): void {
  const given = TLS_OPTIONS.find(name => options[name] !== undefined)
  if (given === undefined) return
  throw optionInvalid(`${given} belongs to an https:// URL of the app, which is not given.`)
}

function tlsOf({ appInsecure, appCa, appServerName }: OriginOptions): TlsOptions {
  if (appInsecure && appCa !== undefined)
    throw optionInvalid('appInsecure and appCa exclude each other: one accepts any certificate.')
  if (appServerName !== undefined && !HOST_NAME.test(appServerName))
    throw optionInvalid(`appServerName "${appServerName}" is not the name of a host, such as app.example.`)
  return {
    ...(appInsecure && { verify: false }),
    ...(appCa !== undefined && { ca: appCa }),
    ...(appServerName !== undefined && { serverName: appServerName }),
  }
}

/** A pattern for names in SNI: neither an address nor a port. */
const HOST_NAME = /^(?=.{1,253}$)(?!.*\.\d+$)[\w-]{1,63}(?:\.[\w-]{1,63})*$/

/** Parses a URL like `URL.parse`, which Node 20 does not have. */
function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
