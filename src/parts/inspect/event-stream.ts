// `GET events`: lines of JSON for one reader. Changes of an exchange are combined; a reader that is too slow misses
// frames, and gets a `behind` event.

import type { Frame, InspectEvent } from '../../exchange.ts'
import type { Filter } from '../../exchange-filter.ts'
import type { Entry } from './entry.ts'
import type { Inspector } from './inspector.ts'
import { rowOf } from './view.ts'
import { Slices } from './wait.ts'

/** The time in milliseconds within which changes are combined into one line. */
const LINE_EVERY_MS = 100
const PING_EVERY_MS = 15_000
/** The number of frames and removed ids that may wait for a slow reader. If exceeded: `behind`. */
const MAX_WAITING = 2_000

export function eventStream(
  inspector: Inspector,
  filter: Filter,
  wantsFrames: boolean,
): ReadableStream<Uint8Array> {
  let reader: Reader | undefined
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        reader = new Reader(inspector, filter, wantsFrames, controller)
      },
      pull() {
        reader?.send()
      },
      cancel() {
        reader?.stop()
      },
    },
    { highWaterMark: 64 },
  )
}

class Reader {
  readonly #inspector: Inspector
  readonly #filter: Filter
  readonly #controller: ReadableStreamDefaultController<Uint8Array>
  readonly #changed = new Set<Entry>()
  #removed: string[] = []
  #frames: { readonly id: string; readonly frame: Frame }[] = []
  #isBehind = false
  #session = ''
  #lastLineAt = performance.now()
  readonly #stops: (() => void)[]
  readonly #encoder = new TextEncoder()

  constructor(
    inspector: Inspector,
    filter: Filter,
    wantsFrames: boolean,
    controller: ReadableStreamDefaultController<Uint8Array>,
  ) {
    this.#inspector = inspector
    this.#filter = filter
    this.#controller = controller
    const { store } = inspector
    const timer = setInterval(() => this.send(), LINE_EVERY_MS)
    this.#stops = [
      () => clearInterval(timer),
      store.on('changed', entry => void this.#changed.add(entry)),
      store.on('removed', entries => this.#left(entries)),
      inspector.on('closed', () => this.#end()),
    ]
    if (wantsFrames) this.#stops.push(store.on('frame', ({ entry, frame }) => this.#framed(entry, frame)))
    this.send()
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  #end(): void {
    this.send()
    this.stop()
    try {
      this.#controller.close()
    } catch {
      // The reader left at the same moment.
    }
  }

  #left(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.#changed.delete(entry)
      if (this.#removed.length < MAX_WAITING) this.#removed.push(String(entry.id))
      else this.#isBehind = true
    }
  }

  #framed(entry: Entry, frame: Frame): void {
    if (this.#frames.length < MAX_WAITING) this.#frames.push({ id: String(entry.id), frame })
    else this.#isBehind = true
  }

  send(): void {
    if (this.#stops.length === 0 && this.#session !== '') return
    const hasRoom = () => (this.#controller.desiredSize ?? 0) > 0
    if (!hasRoom()) return
    if (this.#removed.length > 0) this.#line({ type: 'removed', ids: this.#removed.splice(0) })
    const unmatched: string[] = []
    const slices = new Slices()
    for (const entry of this.#changed) {
      // The rest is sent next time.
      if (!hasRoom() || slices.isOver) break
      this.#changed.delete(entry)
      if (this.#inspector.matches(this.#filter, entry))
        this.#line({ type: 'exchange', exchange: rowOf(entry, this.#inspector.masked) })
      else unmatched.push(String(entry.id))
    }
    if (unmatched.length > 0) this.#line({ type: 'unmatched', ids: unmatched })
    if (this.#changed.size > 0) return
    while (this.#frames.length > 0 && hasRoom()) this.#line({ type: 'frame', ...this.#frames.shift()! })
    if (this.#frames.length > 0) return
    if (this.#isBehind) {
      this.#isBehind = false
      this.#line({ type: 'behind' })
    }
    this.#tellSession()
    if (performance.now() - this.#lastLineAt >= PING_EVERY_MS) this.#line({ type: 'ping' })
  }

  #tellSession(): void {
    const { session } = this.#inspector
    const text = JSON.stringify(session)
    if (text === this.#session) return
    this.#session = text
    this.#line({ type: 'session', session })
  }

  #line(event: InspectEvent): void {
    this.#lastLineAt = performance.now()
    this.#controller.enqueue(this.#encoder.encode(`${JSON.stringify(event)}\n`))
  }
}
