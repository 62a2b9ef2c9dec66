// Flags of `localtunnels [port]`.

import { Option } from 'commander'
import { TunnelError } from '../../errors.ts'
import { parseHost } from '../../names.ts'
import type { ShareSettings } from '../commands/share.ts'
import type { Flags } from '../settings/flags.ts'
import { parseRoutes } from '../settings/target.ts'
import { appTls, needHttps, targetOf } from './app.ts'
import { connection } from './connection.ts'
import { guardSettings, wallOptions, wayOptions } from './guard.ts'
import { hostOption, hostsOf, subdomainOf, subdomainOption, wildcardOption } from './names.ts'
import { jsonOption, logRateOption, quietOption } from './printing.ts'
import { repeatable } from './values.ts'

export function shareOptions(): Option[] {
  return [
    new Option('--spa', 'with --serve: /index.html for pages that are not there').env('TUNNEL_SPA'),
    subdomainOption('APP_NAME, else a friendly one'),
    new Option('--exact', 'take no other name when that one is taken').env('TUNNEL_EXACT'),
    new Option('--wire <wire>', 'auto, streams or json (default: auto)').env('TUNNEL_WIRE'),
    new Option(
      '--host-header <host>',
      'Host the app sees: preserve, rewrite, or a host (default: preserve)',
    ).env('TUNNEL_HOST_HEADER'),
    repeatable('--route <path=app>', 'path with an app of its own, such as /api=8080; repeatable').env(
      'TUNNEL_ROUTE',
    ),
    wildcardOption(),
    repeatable(
      '--wildcard-host <labels>',
      'with --wildcard: a host that may have a certificate, such as anna; repeatable',
    ).env('TUNNEL_WILDCARD_HOST'),
    hostOption(),
    new Option('--protocol <protocol>', 'what the app speaks: http/1.1, h2c or h2 (default: http/1.1)').env(
      'TUNNEL_PROTOCOL',
    ),
    repeatable(
      '--inbox <path>',
      'webhooks wait on the server while this is not running: /hooks/*; repeatable; needs a token',
    ).env('TUNNEL_INBOX'),
    new Option('--pool [kind]', 'share the name with other clients: none, cookie, address, or all').env(
      'TUNNEL_POOL',
    ),
    new Option('--pool-answer <whose>', 'with --pool all: first, the label of a client, or a status').env(
      'TUNNEL_POOL_ANSWER',
    ),
    new Option('--pool-label <label>', 'with --pool all: what this client calls itself').env(
      'TUNNEL_POOL_LABEL',
    ),
    new Option('--take <filter>', 'the requests that the app gets: POST body:"invoice.paid"').env(
      'TUNNEL_TAKE',
    ),
    ...wayOptions(repeatable),
    ...wallOptions(repeatable),
    new Option(
      '--inspect [port]',
      'look at requests in a browser (default: on a terminal, on any free port)',
    ).env('TUNNEL_INSPECT'),
    new Option('--no-inspect', 'do not').env('TUNNEL_NO_INSPECT'),
    new Option('--qr', 'show the URL as a QR code').env('TUNNEL_QR'),
    new Option('--open', 'open the URL in the browser').env('TUNNEL_OPEN'),
    new Option('--copy', 'copy the URL to the clipboard').env('TUNNEL_COPY'),
    jsonOption(),
    logRateOption(),
    quietOption(),
  ]
}

const AFFINITIES = ['none', 'cookie', 'address'] as const

function poolOf(flags: Flags): Pick<ShareSettings['client'], 'pool'> {
  const text = flags.isOn('pool') ? 'none' : flags.text('pool')
  const answer = flags.text('poolAnswer')
  const label = flags.text('poolLabel')
  if (text === 'all') {
    const whose = answer !== undefined && /^\d+$/.test(answer) ? Number(answer) : answer
    return { pool: { to: 'all', ...(whose !== undefined && { answer: whose }), ...(label && { label }) } }
  }
  for (const name of ['poolAnswer', 'poolLabel'] as const)
    if (flags.text(name) !== undefined)
      throw new TunnelError('OPTION_INVALID', `${flags.label(name)} needs --pool all.`)
  if (text === undefined) return {}
  const affinity = AFFINITIES.find(one => one === text)
  if (affinity !== undefined) return { pool: { affinity } }
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label('pool')} "${text}" is none of none, cookie, address and all.`,
  )
}

function protocolOf(flags: Flags): { readonly protocol?: 'http/1.1' | 'h2c' | 'h2' } {
  const text = flags.text('protocol')
  if (text === undefined) return {}
  if (text === 'http/1.1' || text === 'h2c' || text === 'h2') return { protocol: text }
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label('protocol')} "${text}" is none of http/1.1, h2c and h2.`,
  )
}

/** `undefined`: neither flag was given. */
function inspectOf(flags: Flags): ShareSettings['inspect'] {
  if (flags.isOff('inspect')) return false
  if (flags.isOn('inspect')) return true
  const port = flags.port('inspect', 0)
  return port === undefined ? undefined : { port }
}

const WIRES = ['auto', 'streams', 'json'] as const

export function shareSettings(flags: Flags, positional: string | undefined): ShareSettings {
  const { destination, client } = connection(flags)
  const subdomain = subdomainOf(flags)
  const wireText = flags.text('wire') ?? 'auto'
  const wire = WIRES.find(one => one === wireText)
  if (wire === undefined) {
    throw new TunnelError(
      'OPTION_INVALID',
      `${flags.label('wire')} "${wireText}" is none of auto, streams and json.`,
    )
  }
  const hostHeader = flags.text('hostHeader')
  if (hostHeader !== undefined) parseHost(hostHeader)
  const take = flags.text('take')
  if (flags.isOn('exact') && subdomain === undefined)
    throw new TunnelError('OPTION_INVALID', `${flags.label('exact')} needs a name: --subdomain <name>.`)
  const wildcardHosts = flags.list('wildcardHost')
  const inbox = flags.list('inbox')
  const guard = guardSettings(flags)
  const routes = parseRoutes(flags.list('route'), appTls(flags))
  const target = targetOf(flags, positional)
  needHttps(flags, [target.options, ...Object.values(routes ?? {})])
  return {
    target,
    destination,
    client: {
      ...client,
      wire,
      ...(subdomain !== undefined && { subdomain }),
      ...(flags.isOn('exact') && { exact: true }),
      ...(hostHeader && { hostHeader }),
      ...(routes && { routes }),
      ...(flags.isOn('wildcard') && { wildcard: true }),
      ...(wildcardHosts.length > 0 && { wildcardHosts }),
      ...hostsOf(flags),
      ...protocolOf(flags),
      ...(inbox.length > 0 && { inbox: { paths: inbox } }),
      ...poolOf(flags),
      ...(take && { take }),
      ...(guard && { guard }),
    },
    inspect: inspectOf(flags),
    isQrWanted: flags.isOn('qr'),
    isOpenWanted: flags.isOn('open'),
    isCopyWanted: flags.isOn('copy'),
  }
}
