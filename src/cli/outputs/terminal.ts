// Output for a person at a terminal: lines that stay, and below them the status and the keys, which are redrawn in
// place.
//
//   Public    https://calm-otter.tunnel.example
//   App       http://localhost:3000
//
//   12:01:07  200  GET    /                                  18 ms   4.1 kB
//   ● live  1 request
//   o open  c copy  h help  Ctrl+C quit
//
// The output does not use the full screen, so that earlier lines can be read and copied, and a crash leaves a usable shell.

import { VERSION } from '../../version.ts'
import type {
  CliEvent,
  ListeningEvent,
  OfferedKey,
  Output,
  ReadyEvent,
  ServiceEvent,
  Sink,
} from '../output.ts'
import { cut, formatDuration, formatTime, visible, widthOf, wrapped } from '../terminal/format.ts'
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
import { Status } from './status.ts'

/** The time in milliseconds within which services of one file are usually granted. After it, each is shown by itself. */
const GATHER_MS = 100

/** The width below which times are left out. */
const NARROW_COLUMNS = 60

/** The events without a time: they belong to the start, to the end, or to the second that just ended. */
const UNTIMED: ReadonlySet<CliEvent['type']> = new Set([
  'service',
  'configured',
  'configError',
  'draining',
  'suppressed',
])

const CLEAR_LINE = '\r\x1b[2K'
const CLEAR_BOTH_LINES = `${CLEAR_LINE}\x1b[1A\x1b[2K`

/** The width of a label in the head. */
const LABEL_COLUMNS = 10
/** The maximum width of services' names. */
const MAX_SERVICE_COLUMNS = 20

export class TerminalOutput implements Output {
  readonly #out: Sink
  readonly #palette: Palette
  readonly #now: () => Date
  readonly #ticker: ReturnType<typeof setInterval>
  readonly #status: Status
  #hasServices = false
  #hasTotals = false
  #isUncounted = false
  /** The services that were granted and not shown yet. */
  readonly #services: ServiceEvent[] = []
  #gathering: ReturnType<typeof setTimeout> | undefined
  #lastError = ''
  #keys: readonly OfferedKey[] = []
  #drawn = ''

  constructor(out: Sink, palette: Palette, now: () => Date) {
    this.#out = out
    this.#palette = palette
    this.#now = now
    this.#status = new Status(now)
    // For the seconds of an outage, and after a change of width. Writes nothing if the line looks the same.
    this.#ticker = setInterval(() => this.#drawStatus(), 1_000)
    this.#ticker.unref()
  }

  event(event: CliEvent): void {
    // The line of a service also says that its app is missing.
    if (event.type !== 'service' && event.type !== 'origin') this.#flushServices()
    // Before `take`, because the lines compare the event with the state before it.
    this.#printLines(event)
    this.#status.take(event)
    if (event.type !== 'service' && event.type !== 'request') this.#drawStatus()
  }

  #printLines(event: CliEvent): void {
    switch (event.type) {
      case 'ready':
        this.#isUncounted = event.kind === 'udp' || event.isEnd === true
        this.#print(this.#header(event))
        break
      case 'service':
        this.#hasServices = true
        this.#services.push(event)
        this.#gathering ??= setTimeout(() => {
          this.#flushServices()
          this.#drawStatus()
        }, GATHER_MS)
        break
      case 'configured':
        this.#printText({ ...event, inspector: undefined })
        if (event.inspector !== undefined) this.#print(this.#inspectLine(event.inspector))
        this.#print('')
        break
      case 'listening':
        this.#print(this.#listeningHeader(event))
        break
      case 'upgraded':
        this.#print(upgradedLine(event, this.#place))
        break
      case 'response':
        this.#print(responseLine(event, this.#place))
        break
      case 'visitorDisconnected':
        this.#print(
          connectionLine(event, this.#status.isListening, this.#now(), this.#palette, this.#out.columns),
        )
        break
      case 'connected':
        this.#tellConnected(event.url)
        break
      case 'origin':
        this.#tellOrigin(event.service, visible(event.origin), event.isUp)
        if (event.service === undefined) this.#lastError = ''
        break
      case 'notice':
        // Only the status line shows these two.
        if (event.code !== 'CERTIFICATE_ORDERED' && event.code !== 'COPIED') this.#printText(event)
        break
      case 'totals':
        this.#hasTotals = true
        this.#print(`  ${totalsLine(event, this.#isUncounted)}`)
        break
      case 'error':
        // All attempts of a long outage fail in the same way: the error is printed once, and the status line shows the outage.
        if (event.service !== undefined || outageOf(event) !== this.#lastError || this.#status.isListening)
          this.#printText(event)
        if (event.service === undefined) this.#lastError = outageOf(event)
        break
      default:
        this.#printText(event)
    }
  }

  /** Shows services that were granted together as a list. */
  #flushServices(): void {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    const services = this.#services.splice(0)
    if (services.length === 0) return
    if (!this.#status.isReady) this.#print(`\n  ${this.#brand} ${this.#palette.dim(VERSION)}\n`)
    this.#status.granted(services)
    this.#print(`${this.#serviceLines(services)}\n`)
  }

  /**
   * Returns name, URL and app of each service as a list. A URL that does not fit next to its name gets its own line,
   * because it must stay whole.
   */
  #serviceLines(services: readonly ServiceEvent[]): string {
    const { bold, cyan, dim, green, yellow } = this.#palette
    const down = services.map(({ service }) => this.#status.down.has(service))
    const marks = down.map(isDown => (isDown ? yellow('○') : green('●')))
    const ends = down.map(isDown => (isDown ? yellow('  app down') : ''))
    const names = services.map(({ service }) => cut(visible(service), MAX_SERVICE_COLUMNS))
    const nameColumns = Math.max(...names.map(widthOf))
    const urls = services.map(({ url }) => visible(url))
    const urlColumns = Math.max(...urls.map(widthOf))
    const apps = services.map(({ origin }) => visible(origin))
    const used = `  ● ${' '.repeat(nameColumns)}  ${' '.repeat(urlColumns)}  → ${down.includes(true) ? '  app down' : ''}`
    const left = this.#out.columns - used.length
    return services
      .map((_, at) => {
        const [name = '', url = '', app = ''] = [names[at], urls[at], apps[at]]
        if (left < SHORTEST_APP_COLUMNS)
          return `  ${marks[at]} ${bold(name)}  ${dim(`→ ${app}`)}${ends[at]}\n    ${cyan(url)}`
        return `  ${marks[at]} ${bold(padded(name, nameColumns))}  ${cyan(padded(url, urlColumns))}  ${dim(`→ ${cut(shortOf(app, left), left)}`)}${ends[at]}`
      })
      .join('\n')
  }

  /** Reports that an app stopped or started to accept connections. The status line shows missing ones. */
  #tellOrigin(service: string | undefined, origin: string, isUp: boolean): void {
    const { isReady, down } = this.#status
    const { dim, yellow } = this.#palette
    const before = down.get(service)
    // A service that is not listed yet will be listed with its state.
    const isListed = isReady && !this.#services.some(one => one.service === service)
    const whose = service === undefined ? '' : `${visible(service)}: `
    if (isUp && before !== undefined && isReady) {
      const after = formatDuration(this.#now().getTime() - before.atMs)
      this.#print(`  ${dim(`${this.#time}${whose}the app on ${origin} is back after ${after}`)}`)
    }
    if (!isUp && before === undefined && isListed)
      this.#print(`  ${dim(this.#time)}${yellow(`${whose}nothing listens on ${origin}`)}`)
  }

  offer(keys: readonly OfferedKey[]): void {
    this.#keys = keys
    this.#drawStatus()
  }

  block(text: string): void {
    this.#print(text)
    this.#drawStatus()
  }

  close(): void {
    this.#flushServices()
    clearInterval(this.#ticker)
    this.#clearStatus()
    // The terminal echoed a second Ctrl+C.
    if (this.#status.isDraining && !this.#hasTotals) this.#out.write(CLEAR_LINE)
  }

  #tellConnected(url: string): void {
    const { isReady, lostAt } = this.#status
    if (lostAt !== undefined) {
      const after = formatDuration(this.#now().getTime() - lostAt)
      const again = isReady ? 'connected again' : 'connected'
      this.#print(`  ${this.#palette.dim(`${this.#time}${again} after ${after}`)}`)
    }
    this.#lastError = ''
    if (isReady && !this.#hasServices && url !== this.#status.url)
      this.#print(`  The URL changed: ${this.#bold(url)}`)
  }

  /** The time of day, printed before notices and errors because they may stay on the screen for hours. */
  get #time(): string {
    return this.#out.columns < NARROW_COLUMNS ? '' : `${formatTime(this.#now())}  `
  }

  #header(event: ReadyEvent): string {
    const { dim } = this.#palette
    const hint = 'this machine only; to share it, name a server: --server'
    const trip = event.roundTripMs === undefined ? '' : `, ${formatDuration(event.roundTripMs)} away`
    return [
      '',
      `  ${this.#brand} ${dim(VERSION)}`,
      '',
      this.#labelled(placeOf(event), event.url, text => this.#bold(text)),
      this.#labelled(event.isEnd ? 'Service' : 'App', event.origin),
      ...(event.inspector === undefined ? [] : [this.#inspectLine(event.inspector)]),
      this.#labelled(
        'Server',
        event.isEmbedded ? hint : event.server.replace(/^https?:\/\/([^/]+)\/?$/, '$1') + trip,
      ),
      '',
    ].join('\n')
  }

  #listeningHeader({ url, port, tlsPort, domains }: ListeningEvent): string {
    const { dim } = this.#palette
    const hasOther = tlsPort !== undefined && tlsPort !== port
    return [
      '',
      `  ${this.#brand} ${dim(`server ${VERSION}`)}`,
      '',
      this.#labelled('Public', url, text => this.#bold(text)),
      this.#labelled('Names', domains.map(domain => `*.${domain}`).join(', ')),
      ...(hasOther ? [this.#labelled('TLS', `tunnels on port ${tlsPort}`)] : []),
      this.#labelled('Clients', `localtunnels 3000 --server ${visible(url)}`),
      '',
    ].join('\n')
  }

  get #brand(): string {
    return this.#palette.bold(this.#palette.cyan('localtunnels'))
  }

  /** Returns a label and its text. Words are wrapped next to it; a URL that is too long gets its own line. */
  #labelled(label: string, value: string, colour = (text: string) => text): string {
    const lines = wrapped(visible(value), this.#out.columns - 2 - LABEL_COLUMNS)
    const isLong = widthOf(lines[0] ?? '') > this.#out.columns - 2 - LABEL_COLUMNS
    if (isLong) return `  ${this.#palette.dim(label)}\n  ${colour(visible(value))}`
    return lines
      .map(
        (line, at) => `  ${this.#palette.dim((at === 0 ? label : '').padEnd(LABEL_COLUMNS))}${colour(line)}`,
      )
      .join('\n')
  }

  /**
   * Returns the line of the page's URL. It contains a token, and two lines would not be one link: if it does not fit,
   * a key opens it.
   */
  #inspectLine(url: string): string {
    const isWhole = widthOf(url) + 2 + LABEL_COLUMNS <= this.#out.columns
    return this.#labelled('Inspect', isWhole ? url : `${url.replace(/\/?#.*/, '')}, i opens it`)
  }

  #bold(url: string): string {
    return this.#palette.bold(this.#palette.cyan(visible(url)))
  }

  #printText(event: CliEvent): void {
    const text = eventText(event)
    if (text === undefined) return
    const { red, yellow } = this.#palette
    const isBad = event.type === 'error' || event.type === 'configError'
    const isPlain = event.type === 'configured' || event.type === 'removed'
    const colour = isBad ? red : isPlain ? (line: string) => line : yellow
    const time = UNTIMED.has(event.type) ? '' : this.#time
    const lines = wrapped(text, this.#out.columns - 2 - time.length)
    const margin = ' '.repeat(time.length)
    this.#print(
      lines.map((line, at) => `  ${at === 0 ? this.#palette.dim(time) : margin}${colour(line)}`).join('\n'),
    )
  }

  #print(text: string): void {
    this.#clearStatus()
    this.#out.write(`${text}\n`)
  }

  get #place(): Place {
    return { now: this.#now(), palette: this.#palette, columns: this.#out.columns }
  }

  #clearStatus(): void {
    if (this.#drawn !== '') this.#out.write(this.#clear)
    this.#drawn = ''
  }

  get #clear(): string {
    return this.#drawn.includes('\n') ? CLEAR_BOTH_LINES : CLEAR_LINE
  }

  #drawStatus(): void {
    const { green, yellow, dim } = this.#palette
    const [mark, text, bad = '', right = ''] = this.#status.text
    if (mark === '') return this.#clearStatus()
    // One column stays free: a full line would wrap, and a wrapped line cannot be cleared as one.
    const columns = this.#out.columns - 5
    const shown = cut(text + bad, columns)
    const [plain, red] = [shown.slice(0, text.length), shown.slice(text.length)]
    const gap = columns - widthOf(shown) - right.length
    const end = right === '' || gap < 2 ? '' : ' '.repeat(gap) + dim(right)
    const line = `  ${mark === '●' ? green(mark) : yellow(mark)} ${mark === '●' ? dim(plain) : plain}${red === '' ? '' : this.#palette.red(red)}${end}`
    const both = this.#keys.length === 0 || !this.#status.isReady ? line : `${line}\n${this.#keyLine}`
    if (both === this.#drawn) return
    this.#out.write(this.#drawn === '' ? both : this.#clear + both)
    this.#drawn = both
  }

  /** The keys that fit, in order. */
  get #keyLine(): string {
    const { cyan, dim } = this.#palette
    const keys = [...this.#keys, ['Ctrl+C', 'quit'] as const]
    const widths = keys.map(([key, what]) => key.length + what.length + 3)
    while (widths.length > 1 && widths.reduce((sum, one) => sum + one, 0) > this.#out.columns) widths.pop()
    return `  ${keys
      .slice(0, widths.length)
      .map(([key, what]) => `${cyan(key)} ${dim(what)}`)
      .join('  ')}`
  }
}

/** The minimum width for an app next to its URL. With less, the URL gets its own line. */
const SHORTEST_APP_COLUMNS = 6

function padded(text: string, columns: number): string {
  return text + ' '.repeat(columns - widthOf(text))
}

/** Returns `:3000` in place of `http://localhost:3000` if that does not fit. */
function shortOf(app: string, columns: number): string {
  return widthOf(app) <= columns ? app : app.replace(/^(?:https?:\/\/)?localhost(?=:\d+$)/, '')
}

function placeOf({ url, isEnd }: ReadyEvent): string {
  return isEnd ? 'Local' : url.startsWith('private:') ? 'Private' : 'Public'
}
