// `localtunnels config check`: shows what a configuration file means, or every fault in it.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathOf } from '../../config/check.ts'
import { type Fault, faultLine, sortFaults } from '../../config/fault.ts'
import { EXTENSIONS, extensionOf, findFiles } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import type { ServerConfig } from '../../config/server-config.ts'
import type { ServiceConfig } from '../../config/service.ts'
import { TunnelError } from '../../errors.ts'
import { openServerFault } from '../../server/settings/open-server.ts'
import type { CommandIo } from '../run.ts'
import { destinationOfFile, trustsServer } from '../settings/destination.ts'
import { Logins } from '../settings/logins.ts'
import { type Finding, rehearse } from '../sharing/rehearsal.ts'
import { count, visible, widthOf } from '../terminal/format.ts'
import type { Palette } from '../terminal/palette.ts'

export interface CheckSettings {
  /** The file. `undefined`: the one in the current folder. */
  readonly file: string | undefined
  /**
   * The kind of the file. `true`: a server's; `false`: a client's; an address: that of the server, for a client's
   * file that names none.
   */
  readonly server: string | boolean | undefined
}

interface Surroundings extends Pick<CommandIo, 'environment' | 'write'> {
  readonly palette: Palette
}

/** Checks the file. Rejects with `CONFIG_INVALID` after the last fault was printed. */
export async function checkConfig(
  { file: named, server }: CheckSettings,
  around: Surroundings,
): Promise<void> {
  // In `--server server.toml`, the word after the flag is the file.
  const isFile = named === undefined && typeof server === 'string' && extensionOf(server) !== undefined
  const file = isFile ? server : named
  const address = isFile || typeof server === 'boolean' ? undefined : server
  const isClient = server === false || address !== undefined
  const kind = server === undefined ? undefined : isClient ? 'client' : 'server'
  const path = file ?? findConfig('.')
  const environment = { ...around.environment, ...(address !== undefined && { TUNNEL_SERVER: address }) }
  const logins = () => new Logins(environment)
  const trusts = (server: string) => trustsServer(server, environment, logins)
  const found = file === undefined ? trusts : undefined
  const { config, faults, shown, places } = await loadConfig(path, { environment, kind, found })
  const refuse = (all: readonly Fault[]): never => {
    for (const line of faultLines(path, all)) around.write(`${line}\n`)
    throw faultsError(path, all)
  }
  if (config === undefined) return refuse(faults)
  const source = { path, isNamed: file !== undefined, isLocal: false }
  const destination =
    config.kind === 'client'
      ? destinationOfFile({ connection: config.connection, ...source }, environment, logins)
      : undefined
  const findings = await rehearse(config, environment, destination)
  if (findings.length > 0) {
    const message = (one: Finding) => (one.path === '' ? one.message : `${one.path}: ${one.message}`)
    refuse(sortFaults(findings.map(one => ({ at: places.get(one.path), message: message(one) }))))
  }
  const services = config.kind === 'client' ? config.services : []
  const what = config.kind === 'client' ? `a client with ${count(services.length, 'service')}` : 'a server'
  const own = [...shown].filter(([key]) => !key.startsWith('services.'))
  around.write(`${visible(path)}: ${what}\n`)
  for (const rows of [own, services.map(service => rowOf(service, shown))]) {
    if (rows.length > 0) around.write(`\n${columns(rows, around.palette)}`)
  }
  const notes = [
    ...(destination?.notices ?? []).map(({ message }) => message),
    ...(config.kind === 'server' ? openNotes(config, environment) : []),
  ]
  if (notes.length > 0) around.write(`\n${notes.map(text => `  note: ${visible(text)}\n`).join('')}`)
}

/** Returns notes, which are not faults: flags may add the missing options. */
function openNotes(
  { options: { open, ...options } }: ServerConfig,
  { TUNNEL_SERVER_TOKEN, TUNNEL_SERVER_OPEN, TUNNEL_SERVER_HOST }: Surroundings['environment'],
): readonly string[] {
  const host = TUNNEL_SERVER_HOST || options.host
  const { tokens, jwtTokens, tokensFile } = options
  const hasTokens = TUNNEL_SERVER_TOKEN || (tokens ?? jwtTokens ?? tokensFile) !== undefined
  if (open || TUNNEL_SERVER_OPEN || hasTokens) return []
  const isLocal = openServerFault({ ...options, host: 'localhost' }) === undefined
  if (openServerFault({ ...options, ...(host !== undefined && { host }) }) === undefined) return []
  const mend = `give it tokens here, --token${isLocal ? ', host = "127.0.0.1"' : ''} or open = true`
  return [`localtunnels server refuses this file without a token: ${mend}`]
}

/** Aligns cells in columns, the first one bold. */
function columns(rows: readonly (readonly string[])[], { bold }: Palette): string {
  const seen = rows.map(row => row.map(visible))
  const width = (column: number) => Math.max(...seen.map(row => widthOf(row[column] ?? '')))
  const widths = (seen[0] ?? []).map((_, column) => width(column))
  const pad = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell))
  return seen
    .map(([first = '', ...others]) => {
      const rest = others.map((cell, index) => pad(cell, index + 1)).join('  ')
      return `  ${bold(pad(first, 0))}  ${rest}`.trimEnd()
    })
    .map(line => `${line}\n`)
    .join('')
}

const OLD_FILE = 'localtunnels.config.ts'

/** Returns the configuration file of a folder. Throws `CONFIG_INVALID` if there is none, or more than one. */
export function findConfig(folder: string): string {
  const [first, second] = findFiles(folder)
  if (first === undefined) {
    const old = existsSync(join(folder, OLD_FILE)) ? ` ${OLD_FILE} is one of localtunnels 0.2.` : ''
    throw new TunnelError(
      'CONFIG_INVALID',
      `There is no localtunnels.toml (nor ${EXTENSIONS.slice(1).join(', ')}) in this folder.${old}`,
    )
  }
  if (second === undefined) return first
  throw new TunnelError(
    'CONFIG_INVALID',
    `There are two configuration files, ${first} and ${second}: name one of them.`,
  )
}

/** Returns one line per fault, in a form for terminals. */
export function faultLines(path: string, faults: readonly Fault[]): readonly string[] {
  return faults.map(fault => visible(faultLine(path, fault)))
}

export function faultsError(path: string, faults: readonly Fault[]): TunnelError {
  return new TunnelError('CONFIG_INVALID', `${path} has ${count(faults.length, 'fault')}.`)
}

/** Returns the cells of a service: name, kind, app, and the rest. */
function rowOf(service: ServiceConfig, shown: ReadonlyMap<string, string>): readonly string[] {
  const path = pathOf('services', service.name)
  const keys = [...shown]
    .filter(([key]) => key.startsWith(`${path}.`))
    .map(([key, text]) => [key.slice(path.length + 1), text] as const)
  const of = new Map(keys)
  const { options } = service
  const rest = keys.filter(([key]) => !TOLD.has(key)).map(([key, text]) => `${key} ${text}`)
  if ('subdomain' in options && !of.has('subdomain')) rest.unshift(`subdomain ${options.subdomain}`)
  const port = of.get('port')
  const app = port === undefined ? undefined : `${of.get('host') ?? 'localhost'}:${port}`
  const kind = of.has('folder') ? 'folder' : service.kind
  return [
    service.name,
    kind,
    app ?? of.get('url') ?? of.get('unix') ?? of.get('folder') ?? '',
    rest.join(', '),
  ]
}

/** The keys that have a column of their own. */
const TOLD: ReadonlySet<string> = new Set(['kind', 'port', 'host', 'url', 'unix', 'folder'])
