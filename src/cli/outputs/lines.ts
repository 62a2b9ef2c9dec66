// The lines that both outputs for humans print. Everything that came from elsewhere is made visible first.

import { faultLine } from '../../config/fault.ts'
import { count, cut, formatBytes, formatDuration, formatTime, visible } from '../format.ts'
import type { CliEvent, ResponseEvent, TotalsEvent } from '../output.ts'
import type { Palette } from '../palette.ts'

/** Below this width, time and size give way to the path. */
const NARROW_COLUMNS = 60
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

/** `142 requests, 2 errors, 31 min`. */
export function totalsLine(event: TotalsEvent): string {
  return `${count(event.requests, 'request')}, ${count(event.errors, 'error')}, ${formatDuration(event.durationMs)}`
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
      return event.requests === 0
        ? undefined
        : `finishing ${count(event.requests, 'request')}; Ctrl+C again leaves at once`
    case 'connection':
      return `+ ${event.subdomain} from ${visible(event.remoteAddress)} (${event.wire})`
    case 'disconnection':
      return `- ${event.subdomain} ${visible(event.reason)}`
    default:
      return undefined
  }
}
