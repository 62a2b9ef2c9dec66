// The flags of `localtunnels [port]` and `localtunnels http [port]`, which are the same.

import type { Command } from 'commander'
import { optionInvalid } from '../../errors.ts'
import { parseHost } from '../../names.ts'
import { REWRITABLE } from '../../paths/rewriting.ts'
import type { Actions } from '../actions.ts'
import type { ShareSettings } from '../commands/share.ts'
import { Flags } from '../settings/flags.ts'
import { parseRoutes } from '../settings/target.ts'
import { APP_FLAGS, appTls, needHttps, targetOf } from './app.ts'
import { connection, END_FLAG } from './connection.ts'
import { ACCESS_FLAGS, guardSettings } from './guard.ts'
import {
  HOST_NAME_FLAG,
  hostsOf,
  PRIVATE_FLAG,
  privateOf,
  subdomainFlag,
  subdomainOf,
  WILDCARD_FLAG,
} from './names.ts'
import { outputWish, PRINTING_FLAGS } from './printing.ts'
import { duration, type FlagTexts, flagOptions, given, sizeOf, wholeNumber } from './values.ts'

export function addSharing(command: Command, actions: Actions): void {
  for (const option of [...flagOptions(APP_FLAGS), ...flagOptions(SHARE_FLAGS)]) command.addOption(option)
  command.action((positional: string | undefined) => {
    const flags = new Flags(command)
    return actions.share(shareSettings(flags, positional), outputWish(flags))
  })
}

export function addHttp(http: Command, actions: Actions): void {
  addSharing(http.addHelpText('after', VARIABLES), actions)
}

const VARIABLES = `
A time is 500ms, 30s or 2h; a number alone is seconds.
Each option is also a variable: --host-header is TUNNEL_HOST_HEADER.
Options on the command line override variables (docs/cli.md).`

const SHARE_FLAGS: FlagTexts = {
  'App:': {
    '--spa': 'with --serve: send /index.html for pages that do not exist',
    '--host-header <host>': 'Host header that the app gets: preserve, rewrite, or a host (default: preserve)',
    '--rewrite <headers>':
      'headers in which the names of app and tunnel are translated: location,cookies,referer,origin,destination, or none (default: all, if the app gets another Host or path)',
    '--strip-prefix <path>': "path to remove from the visitor's path",
    '--add-prefix <path>': "path to put in front of the visitor's path, such as /app",
    '--route <path=app>':
      'send a path to another app, such as /api=8080 or /api=8080,strip-prefix=/api; repeatable',
    '--protocol <protocol>': 'protocol of the app: http/1.1, h2c or h2 (default: http/1.1)',
    '--response-timeout <time>': 'time that the app has to respond, such as 5m (default: as the server says)',
    '--away-page <file>': 'page for visitors while the app or this client is away: .html, .txt or .json',
    '--away-status <status>': 'with --away-page: its status, such as 503 (default: as without a page)',
    '--collect-body <size>':
      'collect request bodies without a length, up to this size, for apps that cannot read them',
  },
  'Server connection:': {
    '--wire <wire>': 'wire protocol: auto, streams or json (default: auto)',
    ...END_FLAG,
  },
  'Name:': {
    ...subdomainFlag('from APP_NAME, or random'),
    '--exact': 'fail if the requested name is in use (default: take "name-2")',
    ...PRIVATE_FLAG,
    ...WILDCARD_FLAG,
    '--wildcard-host <labels>':
      'with --wildcard: a host below the name that may get a certificate, such as anna; repeatable',
    ...HOST_NAME_FLAG,
    '--pool [kind]':
      'share the name with other clients; affinity of a visitor to one client: none, cookie or address (default: none); all sends each request to every client',
    '--pool-response <whose>':
      'with --pool all: response that the visitor gets: first, the label of a client, or a status',
    '--pool-label <label>': 'with --pool all: label of this client',
  },
  ...ACCESS_FLAGS,
  'Inspector and webhooks:': {
    '--inspect [port]': 'run the inspector (default: in a terminal)',
    '--no-inspect': 'do not run the inspector',
    '--inbox <path>':
      'the server stores webhooks to this path while this command is not running, such as /hooks/*; needs a token; repeatable',
    '--filter <filter>': 'forward only requests that match, such as POST body:"invoice.paid"',
  },
  'Output:': {
    '--qr': 'show the URL as a QR code',
    '--open': 'open the URL in the browser',
    '--copy': 'copy the URL to the clipboard',
    ...PRINTING_FLAGS,
  },
}

function awayOf(flags: Flags): ShareSettings['client']['away'] {
  const [file, status] = [flags.text('awayPage'), wholeNumber(flags, 'awayStatus')]
  if (file) return { file, ...(status !== undefined && { status }) }
  if (status === undefined) return undefined
  throw optionInvalid(`${flags.label('awayStatus')} needs --away-page <file>.`)
}

const AFFINITIES = ['none', 'cookie', 'address'] as const

function poolOf(flags: Flags): Pick<ShareSettings['client'], 'pool'> {
  const text = flags.isOn('pool') ? 'none' : flags.text('pool')
  const response = flags.text('poolResponse')
  const label = flags.text('poolLabel')
  if (text === 'all') {
    const whose = response !== undefined && /^\d+$/.test(response) ? Number(response) : response
    return { pool: { to: 'all', ...(whose !== undefined && { response: whose }), ...(label && { label }) } }
  }
  for (const name of ['poolResponse', 'poolLabel'] as const)
    if (flags.text(name) !== undefined) throw optionInvalid(`${flags.label(name)} needs --pool all.`)
  if (text === undefined) return {}
  const affinity = AFFINITIES.find(one => one === text)
  if (affinity !== undefined) return { pool: { affinity } }
  throw optionInvalid(`${flags.label('pool')} "${text}" is none of none, cookie, address and all.`)
}

function protocolOf(flags: Flags): { readonly protocol?: 'http/1.1' | 'h2c' | 'h2' } {
  const text = flags.text('protocol')
  if (text === undefined) return {}
  if (text === 'http/1.1' || text === 'h2c' || text === 'h2') return { protocol: text }
  throw optionInvalid(`${flags.label('protocol')} "${text}" is not a protocol: use http/1.1, h2c or h2.`)
}

function inspectOf(flags: Flags): ShareSettings['inspect'] {
  if (flags.isOff('inspect')) return false
  if (flags.isOn('inspect')) return true
  const port = flags.port('inspect', 0)
  return port === undefined ? undefined : { port }
}

/** Returns the setting. `undefined`: the default. */
function rewriteOf(flags: Flags): ShareSettings['client']['rewrite'] {
  const text = flags.text('rewrite')
  if (!text) return undefined
  const names = text === 'none' ? [] : text.split(',').map(name => name.trim())
  return names.map(name => {
    const known = REWRITABLE.find(one => one === name)
    if (known !== undefined) return known
    const all = REWRITABLE.join(', ')
    throw optionInvalid(`${flags.label('rewrite')} "${name}" is none of ${all}.`)
  })
}

const WIRES = ['auto', 'streams', 'json'] as const

function shareSettings(flags: Flags, positional: string | undefined): ShareSettings {
  const { destination, client } = connection(flags)
  const subdomain = subdomainOf(flags)
  const wireText = flags.text('wire') ?? 'auto'
  const wire = WIRES.find(one => one === wireText)
  if (wire === undefined) {
    throw optionInvalid(`${flags.label('wire')} "${wireText}" is none of auto, streams and json.`)
  }
  const hostHeader = flags.text('hostHeader')
  if (hostHeader !== undefined) parseHost(hostHeader)
  if (flags.isOn('exact') && subdomain === undefined)
    throw optionInvalid(`${flags.label('exact')} needs a name: --subdomain <name>.`)
  const inbox = flags.list('inbox')
  const routes = parseRoutes(flags.list('route'), appTls(flags))
  const target = targetOf(flags, positional)
  needHttps(flags, [target.options, ...Object.values(routes ?? {})])
  return {
    target,
    destination,
    client: {
      ...client,
      wire,
      ...given({
        subdomain,
        exact: flags.isOn('exact'),
        hostHeader: hostHeader || undefined,
        rewrite: rewriteOf(flags),
        stripPrefix: flags.text('stripPrefix') || undefined,
        addPrefix: flags.text('addPrefix') || undefined,
        routes,
        wildcard: flags.isOn('wildcard'),
        wildcardHosts: flags.list('wildcardHost'),
        filter: flags.text('filter') || undefined,
        guard: guardSettings(flags),
        responseTimeoutMs: duration(flags, 'responseTimeout'),
        away: awayOf(flags),
        collectBodyBytes: sizeOf(flags, 'collectBody'),
      }),
      ...hostsOf(flags),
      ...privateOf(flags, destination),
      ...protocolOf(flags),
      ...(inbox.length > 0 && { inbox: { paths: inbox } }),
      ...poolOf(flags),
    },
    inspect: inspectOf(flags),
    isQrWanted: flags.isOn('qr'),
    isOpenWanted: flags.isOn('open'),
    isCopyWanted: flags.isOn('copy'),
  }
}
