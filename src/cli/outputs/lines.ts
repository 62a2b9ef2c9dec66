// The lines that both outputs for humans print. Everything that came from elsewhere is made visible first.

import { faultLine } from '../../config/fault.ts'
import { count, cut, formatBytes, formatDuration, formatTime, visible } from '../format.ts'
import type { CliEvent, ResponseEvent, TotalsEvent, VisitorDisconnectedEvent } from '../output.ts'
import type { Palette } from '../palette.ts'
import { widthOf } from '../width.ts'

/** Below this width, time and size give way to the path. */
const NARROW_COLUMNS = 60
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
  const duration = formatDuration(event.durationMs).padStart(8)
  const size = isNarrow ? '' : `  ${formatBytes(event.bytes).padStart(8)}`
  const left = columns - `  ${time}${method}  ${status}${duration}${size}  `.length
  const reason = event.error === undefined ? '' : cut(`  ${visible(event.error)}`, left)
  const whose = event.service ?? event.subdomain
  const name = (whose === undefined ? '' : `${whose}  `) + (event.host ?? '')
  const path = cut(visible(name + event.path), left - reason.length)
  const { dim, red } = palette
  const coloured = statusColour(event.status, palette)(status)
  return `  ${dim(time)}${method}  ${coloured}${dim(duration + size)}  ${path}${red(reason)}`
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
  const reason = event.error === undefined ? '' : `  ${visible(event.error)}`
  const duration = formatDuration(event.durationMs).padStart(8)
  const size = (bytes: number, way: string) => `${formatBytes(bytes).padStart(8)} ${way}`
  const sizes = `  ${size(bytesIn, 'in')}  ${size(bytesOut, 'out')}`
  const time = `${formatTime(now)}  `
  const { dim, red } = palette
  // Who came, and what went wrong, stay longest.
  for (const [before, after] of [
    [time, duration + sizes],
    ['', duration + sizes],
    [time, duration],
    ['', ''],
  ] as const) {
    if (widthOf(`  ${before}${from}${after}${reason}`) > columns) continue
    return `  ${dim(before)}${from}${dim(after)}${red(reason)}`
  }
  const cutReason = cut(reason, columns / 2)
  return `  ${cut(from, columns - 2 - widthOf(cutReason))}${red(cutReason)}`
}

/** `142 requests, 2 errors, 31 min`; where there are raw tunnels, their connections. */
export function totalsLine({ requests, connections, errors, durationMs }: TotalsEvent): string {
  return [...counts(requests, connections), count(errors, 'error'), formatDuration(durationMs)].join(', ')
}

function counts(requests: number, connections: number | undefined): readonly string[] {
  if (connections === undefined) return [count(requests, 'request')]
  return [...(requests > 0 ? [count(requests, 'request')] : []), count(connections, 'connection')]
}

/** What the outputs for humans say in the same words; `undefined` for events that they show in their own way. */
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
      return `${visible(event.file)}: ${count(event.services, 'service')}`
    case 'fault': {
      const at = event.line === undefined ? undefined : { line: event.line, column: event.column ?? 1 }
      return visible(faultLine(event.file, { at, message: event.message }))
    }
    case 'draining':
      return event.requests + (event.connections ?? 0) === 0
        ? undefined
        : `finishing ${counts(event.requests, event.connections).join(', ')}; Ctrl+C again leaves at once`
    case 'connection':
      return `+ ${event.subdomain} from ${visible(event.remoteAddress)} (${event.wire})`
    case 'disconnection':
      return `- ${event.subdomain} ${visible(event.reason)}`
    default:
      return undefined
  }
}
