// The lines that both outputs for humans print. Everything that came from elsewhere is made visible first.

import { faultLine } from '../../config/fault.ts'
import type {
  CliEvent,
  ConfiguredEvent,
  MoreEvent,
  ResponseEvent,
  TotalsEvent,
  UpgradedEvent,
  VisitorDisconnectedEvent,
} from '../output.ts'
import { count, cut, formatBytes, formatDuration, formatTime, visible } from '../terminal/format.ts'
import type { Palette } from '../terminal/palette.ts'
import { widthOf } from '../terminal/width.ts'

/** UTF-16 units that a column may be made of: what is longer is cut before it is looked at. */
const MAX_UNITS = 4
/** Below this width, time and size give way to the path, and of a failed request its duration. */
const NARROW_COLUMNS = 60
/** Of a path this much stays, whatever is said behind it. */
const MIN_PATH_COLUMNS = 12
/** An IPv4 address with its port. */
const ADDRESS_COLUMNS = 21
/** Addresses of services with names up to this length stand below each other. */
const SERVICE_COLUMNS = 10

/** `12:01:07  GET   200   18 ms   4.1 kB  /path`, never wider than `columns`. */
export function responseLine(event: ResponseEvent, now: Date, palette: Palette, columns: number): string {
  const isNarrow = columns < NARROW_COLUMNS
  const time = isNarrow ? '' : `${formatTime(now)}  `
  const method = cut(visible(event.method), 7).padEnd(7)
  // 0: the visitor left before there was one.
  const status = (event.status === 0 ? '—' : String(event.status)).padStart(3)
  const isShort = isNarrow && event.error !== undefined
  const duration = isShort ? '' : formatDuration(event.durationMs).padStart(8)
  const size = isNarrow ? '' : `  ${formatBytes(event.bytes).padStart(8)}`
  const left = columns - `  ${time}${method}  ${status}${duration}${size}  `.length
  const whose = event.service ?? event.subdomain
  const name = (whose === undefined ? '' : `${whose}  `) + (event.host ?? '')
  const whole = visible((name + event.path).slice(0, MAX_UNITS * Math.max(columns, 0)))
  const minPath = Math.min(widthOf(whole), MIN_PATH_COLUMNS)
  const reason = event.error === undefined ? '' : cut(reasonOf(event.error, event.reason), left - minPath)
  const path = cut(whole, left - widthOf(reason))
  const { dim } = palette
  const coloured = statusColour(event.status, palette)(status)
  return `  ${dim(time)}${method}  ${coloured}${dim(duration + size)}  ${path}${reasonColour(event.error, palette)(reason)}`
}

/** `12:01:07  GET   101    open          /chat`: a WebSocket, which has a line of its own when it is closed. */
export function upgradedLine(event: UpgradedEvent, now: Date, palette: Palette, columns: number): string {
  const isNarrow = columns < NARROW_COLUMNS
  const time = isNarrow ? '' : `${formatTime(now)}  `
  const before = `${'open'.padStart(8)}${isNarrow ? '' : ' '.repeat(10)}  `
  const method = cut(visible(event.method), 7).padEnd(7)
  const name = (event.service === undefined ? '' : `${event.service}  `) + (event.host ?? '')
  const left = columns - `  ${time}${method}  101${before}`.length
  const { dim } = palette
  return `  ${dim(time)}${method}  ${statusColour(101, palette)('101')}${dim(before)}${cut(visible((name + event.path).slice(0, MAX_UNITS * Math.max(left, 0))), left)}`
}

/** That a visitor left is no failure of ours. */
function reasonOf(code: string, reason?: string): string {
  const more = reason === undefined ? '' : `: ${visible(reason)}`
  return code === 'CANCELLED' ? '  visitor left' : `  ${visible(code)}${more}`
}

function reasonColour(code: string | undefined, { dim, red }: Palette): (text: string) => string {
  return code === 'CANCELLED' ? dim : red
}

function statusColour(status: number, palette: Palette): (text: string) => string {
  if (status >= 500) return palette.red
  if (status >= 400) return palette.yellow
  return status >= 300 ? palette.cyan : palette.green
}

/**
 * `12:01:07  203.0.113.7:50123   2.1 s   4.1 kB in    12 kB out`, never wider than `columns`. `showsTunnel`: whose it was
 * is not clear.
 */
export function connectionLine(
  event: VisitorDisconnectedEvent,
  showsTunnel: boolean,
  now: Date,
  palette: Palette,
  columns: number,
): string {
  const { remoteAddress, remotePort, bytesIn, bytesOut } = event
  const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress
  const owner = event.service ?? (showsTunnel ? event.tunnel : undefined)
  const name = owner === undefined ? '' : `${owner}  `
  const from = visible(`${name}${host}:${remotePort}`).padEnd(ADDRESS_COLUMNS)
  const reason = event.error === undefined ? '' : reasonOf(event.error)
  const duration = formatDuration(event.durationMs).padStart(8)
  const size = (bytes: number, way: string) => `${formatBytes(bytes).padStart(8)} ${way}`
  const sizes = `  ${size(bytesIn, 'in')}  ${size(bytesOut, 'out')}`
  const time = `${formatTime(now)}  `
  const { dim } = palette
  const coloured = reasonColour(event.error, palette)
  // Who came, and what went wrong, stay longest.
  for (const [before, after] of [
    [time, duration + sizes],
    ['', duration + sizes],
    [time, duration],
    ['', ''],
  ] as const) {
    if (widthOf(`  ${before}${from}${after}${reason}`) > columns) continue
    return `  ${dim(before)}${from}${dim(after)}${coloured(reason)}`
  }
  const cutReason = cut(reason, columns / 2)
  return `  ${cut(from, columns - 2 - widthOf(cutReason))}${coloured(cutReason)}`
}

/**
 * `142 requests, 2 errors, 31 min`; where there are raw tunnels, their connections. `isUncounted`: a UDP tunnel alone, of
 * whose datagrams nothing is counted here.
 */
export function totalsLine(event: TotalsEvent, isUncounted: boolean): string {
  const { requests, connections, errors, durationMs } = event
  const counted = isUncounted ? [] : counts(requests, connections)
  return [...counted, count(errors, 'error'), formatDuration(durationMs)].join(', ')
}

function counts(requests: number, connections: number | undefined): readonly string[] {
  if (connections === undefined) return [count(requests, 'request')]
  return [...(requests > 0 ? [count(requests, 'request')] : []), count(connections, 'connection')]
}

/**
 * What the outputs for humans say in the same words; `undefined` for events that they show in their own way. `urlColumns`:
 * of the longest URL of services that are shown together, so that what is behind stands below each other.
 */
export function eventText(event: CliEvent, urlColumns = 0): string | undefined {
  switch (event.type) {
    case 'notice':
      return visible(event.message)
    case 'error':
      return `${event.service === undefined ? '' : `${event.service}: `}${event.code}: ${visible(event.message)}`
    case 'service':
      return `${event.service.padEnd(SERVICE_COLUMNS)}  ${visible(event.url).padEnd(urlColumns)}  → ${visible(event.origin)}`
    case 'removed':
      return `${event.service}: removed`
    case 'configured':
      return `${visible(event.file)}: ${servicesText(event)}${event.inspector === undefined ? '' : `, inspect: ${event.inspector}`}`
    case 'fault': {
      const at = event.line === undefined ? undefined : { line: event.line, column: event.column ?? 1 }
      return visible(faultLine(event.file, { at, message: event.message }))
    }
    case 'draining':
      return event.requests + (event.connections ?? 0) === 0
        ? undefined
        : `finishing ${counts(event.requests, event.connections).join(', ')}; press Ctrl+C again to quit now`
    case 'more':
      return moreText(event)
    case 'connection':
      return `+ ${event.subdomain} from ${visible(event.remoteAddress)} (${event.wire})`
    case 'refused': {
      const times = event.count > 1 ? `, ${event.count} times` : ''
      return `refused ${visible(event.remoteAddress)} (${event.wire}): ${event.code}${times}`
    }
    case 'disconnection':
      return `- ${event.subdomain} ${visible(event.reason)}`
    default:
      return undefined
  }
}

/** `3 services`, `2 of 3 services`. */
function servicesText({ services, refused = 0 }: ConfiguredEvent): string {
  return `${refused === 0 ? '' : `${services} of `}${count(services + refused, 'service')}`
}

/** `… and 1,234 more requests, 12 errors`. */
function moreText({ requests, connections, errors, others }: MoreEvent): string | undefined {
  const parts = [
    [requests, 'request'],
    [connections, 'connection'],
    [others, 'event'],
    [errors, 'error'],
  ] as const
  const [first, ...rest] = parts.filter(([number]) => number > 0)
  if (first === undefined) return undefined
  const text = ([number, noun]: readonly [number, string], more: string) =>
    `${number.toLocaleString('en-US')} ${more}${noun}${number === 1 ? '' : 's'}`
  return `… and ${[text(first, 'more '), ...rest.map(part => text(part, ''))].join(', ')}`
}
