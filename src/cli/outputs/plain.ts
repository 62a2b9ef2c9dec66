// Output for pipes and log files: only the URL on stdout, everything else as lines on stderr.

import type { CliEvent, ListeningEvent, Output, Sink } from '../output.ts'
import { cut, formatTime, visible } from '../terminal/format.ts'
import type { Palette } from '../terminal/palette.ts'
import {
  connectionLine,
  eventText,
  outageOf,
  type Place,
  responseLine,
  totalsLine,
  upgradedLine,
} from './lines.ts'

/** The maximum width of a log line, because a request target may have 16 KB. */
const MAX_LOG_COLUMNS = 1_000

export class PlainOutput implements Output {
  readonly #out: Sink
  readonly #log: Sink
  readonly #palette: Palette
  readonly #now: () => Date
  #url = ''
  #hasServices = false
  #isServer = false
  /** Whether the first connection was attempted before. */
  #isRetrying = false
  /** Whether the connection was lost, and no line has reported it yet. */
  #isLost = false
  #isUncounted = false
  /** The last error since the tunnel worked: all attempts of a long outage fail in the same way. */
  #lastError = ''

  constructor(out: Sink, log: Sink, palette: Palette, now: () => Date) {
    this.#out = out
    this.#log = log
    this.#palette = palette
    this.#now = now
  }

  event(event: CliEvent): void {
    switch (event.type) {
      case 'ready':
        this.#isUncounted = event.kind === 'udp' || event.isEnd === true
        this.#announce(event.url)
        if (event.inspector !== undefined) this.#line(`inspect: ${event.inspector}`)
        return this.#line(`ready, forwarding to ${visible(event.origin)}`)
      case 'service':
        this.#hasServices = true
        this.#out.write(`${event.service}  ${visible(event.url)}\n`)
        break
      case 'listening':
        this.#isServer = true
        this.#announce(event.url)
        return this.#line(listeningLine(event))
      case 'upgraded':
        return this.#log.write(`${upgradedLine(event, this.#place).trim()}\n`)
      case 'response':
        return this.#log.write(`${responseLine(event, this.#place).trim()}\n`)
      case 'visitorDisconnected':
        return this.#log.write(
          `${connectionLine(event, this.#isServer, this.#now(), this.#palette, MAX_LOG_COLUMNS).trim()}\n`,
        )
      case 'disconnected':
        this.#isLost = true
        return
      case 'connected':
        this.#lastError = ''
        if (this.#hasServices) return this.#line('connected again')
        // Before `ready`, the URL may not respond.
        if (this.#url === '') return
        if (this.#url !== event.url) this.#announce(event.url)
        return this.#line('connected again')
      case 'reconnecting':
        // A client that does not reconnect prints why it ends.
        if (this.#isLost) this.#line('connection lost, reconnecting')
        this.#isLost = false
        if (this.#url !== '' || this.#hasServices || this.#isRetrying) return
        this.#isRetrying = true
        return this.#line('server unreachable, retrying')
      case 'origin':
        this.#lastError = ''
        return this.#line(
          `${event.service === undefined ? '' : `${event.service}: `}${event.isUp ? 'the app responds' : 'nothing responds yet'}: ${visible(event.origin)}`,
        )
      case 'totals':
        return this.#line(totalsLine(event, this.#isUncounted))
      case 'error':
        // Each service has an error of its own.
        if (event.service !== undefined) break
        // The events of a server are not attempts of one outage, and each says how many there were.
        if (outageOf(event) === this.#lastError && !this.#isServer) return
        this.#lastError = outageOf(event)
    }
    const text = eventText(event)
    if (text !== undefined) this.#line(text)
  }

  block(text: string): void {
    this.#log.write(`${text}\n`)
  }

  close(): void {}

  get #place(): Place {
    return { now: this.#now(), palette: this.#palette, columns: MAX_LOG_COLUMNS, isLog: true }
  }

  #announce(url: string): void {
    this.#url = url
    this.#out.write(`${visible(url)}\n`)
  }

  #line(text: string): void {
    this.#log.write(`${this.#palette.dim(formatTime(this.#now()))}  ${cut(text, MAX_LOG_COLUMNS)}\n`)
  }
}

function listeningLine({ port, tlsPort, domains }: ListeningEvent): string {
  const tls = tlsPort === undefined || tlsPort === port ? '' : `, TLS tunnels on port ${tlsPort}`
  return `listening on port ${port} for ${domains.map(domain => `*.${domain}`).join(', ')}${tls}`
}
