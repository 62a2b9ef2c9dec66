// The lines that both outputs for people print. Foreign text is escaped first.

import { faultLine } from '../../config/fault.ts'
import type {
  CliEvent,
  ConfiguredEvent,
  ResponseEvent,
  SuppressedEvent,
  TotalsEvent,
  UpgradedEvent,
  VisitorDisconnectedEvent,
} from '../output.ts'
import { count, cut, formatBytes, formatDuration, formatTime, visible, widthOf } from '../terminal/format.ts'
import type { Palette } from '../terminal/palette.ts'

/** The maximum number of UTF-16 units per column. Longer text is truncated first. */
const MAX_UNITS = 4
/** The width below which lines have no time and no size. */
const NARROW_COLUMNS = 60
/** The minimum width of a path and of a reason. Size, and then duration, are left out for it. */
const MIN_PATH_COLUMNS = 12
const MIN_REASON_COLUMNS = 12
/** The minimum width of an event's name, with its gap. With less, the name is left out. */
const MIN_NAMED_COLUMNS = 8
/** The width of an IPv4 address with its port. */
const ADDRESS_COLUMNS = 21
/** The minimum and maximum width of a service's name. */
const [NAME_COLUMNS, MAX_NAME_COLUMNS] = [6, 16]
/** The minimum width of a service's name in a log, so that most URLs line up. */
const SERVICE_COLUMNS = 10

export interface Place {
  readonly now: Date
  readonly palette: Palette
  /** The width of the terminal, or the maximum of a log. */
  readonly columns: number
  /** Whether the line is for a log, which has no right edge: duration and size then come before the path. */
  readonly isLog?: boolean
}

/** Returns `12:01:07  200  GET    /path       18 ms   4.1 kB`, never wider than `place.columns`. */
export function responseLine(event: ResponseEvent, place: Place): string {
  const { status, durationMs, bytes } = event
  // 0: the visitor left before there was one.
  return requestLine(
    event,
    status === 0 ? '—' : String(status),
    formatDuration(durationMs),
    formatBytes(bytes),
    place,
  )
}

/** Returns `12:01:07  101  GET    /chat        open` for a WebSocket, which has another line at its end. */
export function upgradedLine(event: UpgradedEvent, place: Place): string {
  return requestLine(event, '101', 'open', '', place)
}

function requestLine(
  event: UpgradedEvent | ResponseEvent,
  status: string,
  duration: string,
  size: string,
  { now, palette, columns, isLog = false }: Place,
): string {
  const {
    error,
    reason: why,
    subdomain,
    event: kind,
  } = event.type === 'response'
    ? event
    : { ...event, error: undefined, reason: undefined, subdomain: undefined, event: undefined }
  const { dim, bold } = palette
  const isNarrow = columns < NARROW_COLUMNS
  const time = isNarrow ? '' : `${formatTime(now)}  `
  const whose = event.service ?? subdomain
  const name = whose === undefined ? '' : `${cut(visible(whose), MAX_NAME_COLUMNS).padEnd(NAME_COLUMNS)}  `
  const method = `${cut(visible(event.method), 7).padEnd(5)}  `
  const head = `  ${time}${name}${status.padStart(3)}  ${method}`
  const whole = visible(`${event.host ?? ''}${event.path}`.slice(0, MAX_UNITS * Math.max(columns, 0)))
  const minPath = Math.min(widthOf(whole), MIN_PATH_COLUMNS)
  const needed = minPath + (error === undefined ? 0 : MIN_REASON_COLUMNS)
  const leftBeside = (tail: string) => columns - widthOf(head) - (tail === '' ? 0 : tail.length + 2)
  const numbers = [`${duration.padStart(7)}  ${size.padStart(7)}`, duration.padStart(7)]
  const tail = numbers.slice(isNarrow ? 1 : 0).find(one => leftBeside(one) >= needed) ?? ''
  const left = leftBeside(tail)
  const reason = error === undefined ? '' : cut(reasonOf(error, why), left - minPath)
  const besidePath =
    left - widthOf(reason) - Math.min(widthOf(whole), Math.max(minPath, Math.floor(left / 2)))
  const eventName =
    kind === undefined || besidePath < MIN_NAMED_COLUMNS ? '' : cut(`  ${visible(kind)}`, besidePath)
  const path = cut(whole, left - widthOf(reason + eventName))
  const shown = path + statusColour(status, palette)(eventName) + reasonColour(error, palette)(reason)
  const start = `  ${dim(time)}${bold(name)}${statusColour(status, palette)(status.padStart(3))}  ${method}`
  if (isLog) return `${start}${dim(tail)}  ${shown}`
  const gap = tail === '' ? '' : ' '.repeat(Math.max(0, left - widthOf(path + eventName + reason)) + 2)
  return `${start}${shown}${gap}${dim(tail)}`.trimEnd()
}

/** Returns the reason. Empty if the visitor left, which is not a failure of ours. */
function reasonOf(code: string, reason?: string): string {
  const more = reason === undefined ? '' : `: ${visible(reason)}`
  return code === 'CANCELLED' ? '  visitor left' : `  ${visible(code)}${more}`
}

function reasonColour(code: string | undefined, { dim, red }: Palette): (text: string) => string {
  return code === 'CANCELLED' ? dim : red
}

/** Returns the colour of a status. A colour means a failure. */
function statusColour(status: string, { bold, dim, red, yellow }: Palette): (text: string) => string {
  if (status >= '5') return text => bold(red(text))
  return status >= '4' && status < '5' ? text => bold(yellow(text)) : dim
}

/**
 * Returns `12:01:07  203.0.113.7:50123   2.1 s   4.1 kB in    12 kB out`, never wider than `columns`. `showsTunnel`:
 * whether to name the tunnel.
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
  // Connections and errors are left out last.
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
 * Returns `142 requests, 2 errors, 31 min`; with raw tunnels, also their connections. `isUncounted`: there is only a
 * UDP tunnel, whose datagrams are not counted.
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
 * Returns what all failed attempts of one outage have in common: for a cluster the reason, because messages of
 * clients differ between attempts.
 */
export function outageOf({ code, message }: { readonly code: string; readonly message: string }): string {
  return code === 'CLUSTER_UNREACHABLE' ? message : code
}

/**
 * Returns the text of events with the same words in every output for people. `undefined` for events that each shows differently.
 */
export function eventText(event: CliEvent): string | undefined {
  switch (event.type) {
    case 'notice':
      return visible(event.message)
    case 'error':
      return `${event.service === undefined ? '' : `${event.service}: `}${event.code}: ${visible(event.message)}`
    case 'service':
      return `${event.service.padEnd(SERVICE_COLUMNS)}  ${visible(event.url)}  → ${visible(event.origin)}`
    case 'removed':
      return `${event.service}: removed`
    case 'configured':
      return `${visible(event.file)}: ${servicesText(event)}${event.inspector === undefined ? '' : `, inspect: ${event.inspector}`}`
    case 'configError': {
      const at = event.line === undefined ? undefined : { line: event.line, column: event.column ?? 1 }
      return visible(faultLine(event.file, { at, message: event.message }))
    }
    case 'draining':
      return event.requests + (event.connections ?? 0) === 0
        ? undefined
        : `finishing ${counts(event.requests, event.connections).join(', ')}; press Ctrl+C again to quit now`
    case 'suppressed':
      return moreText(event)
    case 'connection':
      return event.kind === 'connect'
        ? `+ connected to ${event.subdomain} from ${visible(event.remoteAddress)}${event.token === undefined ? '' : ` (${visible(event.token)})`}`
        : `+ ${event.subdomain} from ${visible(event.remoteAddress)} (${event.wire})`
    case 'refused': {
      const times = event.count > 1 ? `, ${event.count} times` : ''
      return `refused ${visible(event.remoteAddress)} (${event.wire}): ${event.code}${times}`
    }
    case 'disconnection':
      return `- ${event.kind === 'connect' ? 'connected to ' : ''}${event.subdomain} ${visible(event.reason)}`
    default:
      return undefined
  }
}

/** Returns `3 services` or `2 of 3 services`. */
function servicesText({ services, refused = 0 }: ConfiguredEvent): string {
  return `${refused === 0 ? '' : `${services} of `}${count(services + refused, 'service')}`
}

/** Returns `… and 1,234 more requests, 12 errors`. */
function moreText({ requests, connections, errors, others }: SuppressedEvent): string | undefined {
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
