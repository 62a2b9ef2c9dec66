// Output for a human at a terminal: lines that stay, and below them one status line that is drawn again in place.
//
//   https://calm-otter.localhost:8080
//   → http://localhost:3000
//
//   12:01:07  GET      200   18 ms    4.1 kB  /
//   ● live  1 request                              ← the status line
//
// No full screen and no cursor addressing: what scrolled up can be read and copied, and a crash leaves a usable shell.

import { VERSION } from '../../version.ts'
import type { CliEvent, ListeningEvent, Output, ReadyEvent, ServiceEvent, Sink } from '../output.ts'
import { count, cut, formatDuration, formatTime, visible, wrapped } from '../terminal/format.ts'
import type { Palette } from '../terminal/palette.ts'
import { connectionLine, eventText, responseLine, totalsLine, upgradedLine } from './lines.ts'

/** Services of one file are granted within this time, unless the server is far away: then each is shown as it comes. */
const GATHER_MS = 100

/** Below this width, times give way. */
const NARROW_COLUMNS = 60

/** Events without a time: they belong to the start, to the end, or to the second that just ended. */
const UNTIMED: ReadonlySet<CliEvent['type']> = new Set(['service', 'configured', 'fault', 'draining', 'more'])

const CLEAR_LINE = '\r\x1b[2K'

export class TerminalOutput implements Output {
  readonly #out: Sink
  readonly #palette: Palette
  readonly #now: () => Date
  readonly #ticker: ReturnType<typeof setInterval>
  #connecting: string | undefined
  #isReady = false
  #hasServices = false
  #isListening = false
  #url = ''
  #lostAt: number | undefined
  #downOrigin: string | undefined
  #requests = 0
  #connections = 0
  #openConnections = 0
  #isDraining = false
  #hasTotals = false
  #isUncounted = false
  /** Granted, and not shown yet. */
  readonly #services: ServiceEvent[] = []
  #gathering: ReturnType<typeof setTimeout> | undefined
  #urlColumns = 0
  /** WebSockets that are open, by the number of their request. */
  readonly #webSockets = new Set<number>()
  /** What certificates that are ordered wait for, by their names. */
  readonly #orders = new Map<string, string>()
  /** Certificates of the server itself that it lacks, by their names: the first one, and when it is ordered again. */
  readonly #missing = new Map<string, { readonly name: string; readonly retryAtMs: number }>()
  #domains: readonly string[] = []
  #lastError = ''
  #drawn = ''

  constructor(out: Sink, palette: Palette, now: () => Date) {
    this.#out = out
    this.#palette = palette
    this.#now = now
    // For the seconds of an outage and a changed width; writes nothing when the line would look the same.
    this.#ticker = setInterval(() => this.#drawStatus(), 1_000)
    this.#ticker.unref()
  }

  event(event: CliEvent): void {
    if (event.type !== 'service') this.#flushServices()
    if ('names' in event) this.#orders.delete(String(event.names))
    this.#noteMissing(event)
    switch (event.type) {
      case 'connecting':
        this.#connecting = visible(event.server)
        break
      case 'ready':
        this.#isReady = true
        this.#isUncounted = event.kind === 'udp'
        this.#print(this.#header(event))
        break
      case 'service':
        this.#hasServices = true
        this.#services.push(event)
        this.#gathering ??= setTimeout(() => {
          this.#flushServices()
          this.#drawStatus()
        }, GATHER_MS)
        return
      case 'configured':
      case 'removed':
        this.#printText(event)
        break
      case 'listening':
        this.#isListening = true
        this.#domains = event.domains
        this.#print(this.#listeningHeader(event))
        break
      case 'upgraded':
        this.#webSockets.add(event.id)
        this.#print(upgradedLine(event, this.#now(), this.#palette, this.#out.columns))
        break
      case 'response':
        this.#webSockets.delete(event.id)
        this.#requests++
        this.#print(responseLine(event, this.#now(), this.#palette, this.#out.columns))
        break
      case 'request':
        return
      case 'more':
        this.#requests += event.requests
        this.#connections += event.opened
        this.#openConnections += event.opened - event.connections
        this.#printText(event)
        break
      case 'visitorConnected':
        this.#connections++
        this.#openConnections++
        break
      case 'visitorDisconnected':
        this.#openConnections--
        this.#print(connectionLine(event, this.#isListening, this.#now(), this.#palette, this.#out.columns))
        break
      case 'disconnected':
        // What was open ended with the connection, and no more events of it come.
        this.#openConnections = 0
        this.#webSockets.clear()
        this.#lostAt = this.#now().getTime()
        break
      case 'reconnecting':
        // Of the first connection nothing was lost.
        this.#lostAt ??= this.#now().getTime()
        break
      case 'connected':
        if (this.#lostAt !== undefined) this.#printEnd(this.#lostAt)
        this.#lostAt = undefined
        this.#lastError = ''
        if (this.#isReady && !this.#hasServices && event.url !== this.#url)
          this.#print(`  The URL changed: ${this.#bold(event.url)}`)
        this.#url = event.url
        break
      case 'origin':
        if (event.service !== undefined) {
          const text = `${event.service}: ${event.isUp ? 'the app answers' : 'nothing answers yet'}: ${visible(event.origin)}`
          const { dim, yellow } = this.#palette
          this.#print(`  ${dim(this.#time)}${event.isUp ? text : yellow(text)}`)
          break
        }
        this.#downOrigin = event.isUp ? undefined : visible(event.origin)
        this.#lastError = ''
        break
      case 'draining':
        this.#isDraining = true
        this.#printText(event)
        break
      case 'notice':
        if (event.code === 'CERTIFICATE_ORDERED') this.#orders.set(String(event.names), event.message)
        else this.#printText(event)
        break
      case 'totals':
        this.#hasTotals = true
        this.#print(`  ${totalsLine(event, this.#isUncounted)}`)
        break
      case 'error':
        // Every try of a long outage fails in the same way: the error is printed once, the status line shows the outage.
        if (event.service !== undefined || event.code !== this.#lastError || this.#isListening)
          this.#printText(event)
        if (event.service === undefined) this.#lastError = event.code
        break
      default:
        this.#printText(event)
    }
    this.#drawStatus()
  }

  /** A tunnel's own certificate is ordered when a visitor asks for it, so its failure says nothing of the server. */
  #noteMissing(event: CliEvent): void {
    if (!('names' in event) || event.names === undefined) return
    const id = String(event.names)
    if (event.type === 'notice') {
      // A step of an order does not make it there.
      if (event.code !== 'CERTIFICATE_ORDERED') this.#missing.delete(id)
      return
    }
    const name = event.names.find(one => this.#domains.includes(one))
    if (name === undefined || event.retryAt === undefined || event.hasCertificate) return
    this.#missing.set(id, { name, retryAtMs: Date.parse(event.retryAt) })
  }

  /** Shows services that were granted together below each other. */
  #flushServices(): void {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    const services = this.#services.splice(0)
    if (services.length === 0) return
    if (!this.#isReady) this.#print(`\n  ${this.#palette.dim(`localtunnels ${VERSION}`)}\n`)
    this.#isReady = true
    this.#urlColumns = Math.max(this.#urlColumns, ...services.map(({ url }) => visible(url).length))
    for (const service of services) this.#printText(service)
  }

  block(text: string): void {
    this.#print(text)
    this.#drawStatus()
  }

  close(): void {
    this.#flushServices()
    clearInterval(this.#ticker)
    this.#clearStatus()
    // A second Ctrl+C was echoed.
    if (this.#isDraining && !this.#hasTotals) this.#out.write(CLEAR_LINE)
  }

  #printEnd(lostAt: number): void {
    const again = this.#isReady ? 'connected again' : 'connected'
    const after = `${again} after ${formatDuration(this.#now().getTime() - lostAt)}`
    this.#print(`  ${this.#palette.dim(`${this.#time}${after}`)}`)
  }

  /** The time in front of notices and errors, which may stay on the screen for hours. */
  get #time(): string {
    return this.#out.columns < NARROW_COLUMNS ? '' : `${formatTime(this.#now())}  `
  }

  #header(event: ReadyEvent): string {
    const { dim } = this.#palette
    const lines = [
      '',
      `  ${dim(`localtunnels ${VERSION}`)}`,
      '',
      `  ${this.#bold(event.url)}`,
      `  → ${visible(event.origin)}`,
      ...(event.inspector === undefined ? [] : [`  ${dim(`inspect: ${event.inspector}`)}`]),
    ]
    if (event.isEmbedded) {
      const hint = 'Only this machine can open it. To share it, name a server: --server'
      lines.push('', ...wrapped(hint, this.#out.columns - 2).map(line => `  ${dim(line)}`))
    }
    return [...lines, ''].join('\n')
  }

  #listeningHeader({ url, port, tlsPort, domains }: ListeningEvent): string {
    const { dim } = this.#palette
    const hasOther = tlsPort !== undefined && tlsPort !== port
    return [
      '',
      `  ${dim(`localtunnels server ${VERSION}`)}`,
      '',
      `  ${this.#bold(url)}  ${dim(`names: ${domains.map(domain => `*.${domain}`).join(', ')}`)}`,
      ...(hasOther ? [`  ${dim(`TLS tunnels: port ${tlsPort}`)}`] : []),
      `  ${dim('clients:')} localtunnels --port 3000 --server ${visible(url)}`,
      '',
    ].join('\n')
  }

  #bold(url: string): string {
    return this.#palette.bold(this.#palette.cyan(visible(url)))
  }

  #printText(event: CliEvent): void {
    const text = eventText(event, this.#urlColumns)
    if (text === undefined) return
    const { red, yellow } = this.#palette
    const isBad = event.type === 'error' || event.type === 'fault'
    const isPlain = event.type === 'service' || event.type === 'configured' || event.type === 'removed'
    const colour = isBad ? red : isPlain ? (line: string) => line : yellow
    const time = UNTIMED.has(event.type) ? '' : this.#time
    const lines = isPlain ? [text] : wrapped(text, this.#out.columns - 2 - time.length)
    const margin = ' '.repeat(time.length)
    this.#print(
      lines.map((line, at) => `  ${at === 0 ? this.#palette.dim(time) : margin}${colour(line)}`).join('\n'),
    )
  }

  #print(text: string): void {
    this.#clearStatus()
    this.#out.write(`${text}\n`)
  }

  #clearStatus(): void {
    if (this.#drawn !== '') this.#out.write(CLEAR_LINE)
    this.#drawn = ''
  }

  #drawStatus(): void {
    const { green, yellow, dim } = this.#palette
    const [mark, text] = this.#status()
    if (mark === '') return this.#clearStatus()
    // One column stays free: a full line would wrap, and a wrapped line cannot be cleared as one.
    const shown = cut(text, this.#out.columns - 5)
    const line = `  ${mark === '●' ? green(mark) : yellow(mark)} ${mark === '●' ? dim(shown) : shown}`
    if (line === this.#drawn) return
    this.#out.write(this.#drawn === '' ? line : CLEAR_LINE + line)
    this.#drawn = line
  }

  #status(): readonly [mark: '●' | '◐' | '○' | '', text: string] {
    if (this.#isDraining) return ['', '']
    if (this.#lostAt !== undefined) {
      const outageMs = this.#now().getTime() - this.#lostAt
      const what = this.#isReady ? 'reconnecting' : 'server unreachable, retrying'
      return ['◐', `${what}${outageMs < 1_000 ? '' : `, ${formatDuration(outageMs)}`}`]
    }
    if (this.#downOrigin !== undefined && this.#isReady) {
      return ['○', `nothing on ${this.#downOrigin} yet`]
    }
    const [order] = this.#orders.values()
    if (order !== undefined) return ['◐', `${firstOf(this.#orders)}${visible(order)}`]
    const [missing] = this.#missing.values()
    if (missing !== undefined) {
      const inMs = missing.retryAtMs - this.#now().getTime()
      const next = inMs < 1_000 ? 'trying again' : `next try in ${formatDuration(inMs)}`
      return ['◐', `${firstOf(this.#missing)}up, no certificate for ${visible(missing.name)}: ${next}`]
    }
    const open = this.#openConnections + this.#webSockets.size
    const seen = [
      ...(this.#requests === 0 ? [] : [count(this.#requests, 'request')]),
      ...(this.#connections === 0 ? [] : [count(this.#connections, 'connection')]),
      ...(open === 0 ? [] : [`${open} open`]),
    ].join(', ')
    if (this.#isReady || this.#isListening) return ['●', seen === '' ? 'live' : `live  ${seen}`]
    // Registered, and a request through the public side is on its way.
    if (this.#url.startsWith('http')) return ['◐', `${visible(this.#url)}  checking`]
    return this.#connecting === undefined ? ['', ''] : ['◐', `connecting to ${this.#connecting}`]
  }
}

/** `(1 of 2) ` in front of what is said of the first. */
function firstOf({ size }: ReadonlyMap<string, unknown>): string {
  return size === 1 ? '' : `(1 of ${size}) `
}
