// Two carriers joined in memory, with room that runs out, random slicing, delay, rate and a cut.

import type { Carrier, CarrierHandler } from '../../src/session/carrier.ts'
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

export interface LinkOptions {
  readonly random: Random
  /** Bytes that one end takes before it is full. Default: no bound. */
  readonly roomBytes?: number
  readonly headroom?: number
  /** Largest piece that arrives at once. Default 65,536. */
  readonly largestPiece?: number
  /** Sees everything that is put on the wire and everything that arrives. */
  readonly observer?: LinkObserver
  /** With a clock bytes travel by themselves: one way takes `delayMs`, `bytesPerMs` leave at most. */
  readonly timed?: { readonly clock: Clock; readonly delayMs: number; readonly bytesPerMs: number }
}

export interface LinkObserver {
  sent(from: string, bytes: Uint8Array): void
  arrived(at: string, bytes: Uint8Array): void
}

/** One end. Counts its writes; checks that its session keeps to the carrier contract. */
export class LinkEnd implements Carrier {
  readonly headroom: number
  handler: CarrierHandler | undefined
  writes = 0
  /** Bytes put on the wire that did not arrive yet. */
  readonly wire: Uint8Array[] = []
  /** Arrays that were not taken whole, as the session gave them: what it writes into them is seen on the wire. */
  readonly held: { batch: Uint8Array; at: number; end: number }[] = []
  onWireBytes = 0
  arrivedBytes = 0
  isOpen = true
  readonly #link: Link
  readonly name: string

  constructor(link: Link, name: string, headroom: number) {
    this.#link = link
    this.name = name
    this.headroom = headroom
  }

  get heldBytes(): number {
    return this.held.reduce((sum, { at, end }) => sum + end - at, 0)
  }

  send(batch: Uint8Array, start: number, end: number): boolean {
    if (!this.isOpen) return true
    if (start !== this.headroom) throw new Error('the headroom is missing')
    if (end <= start) throw new Error('an empty write')
    if (this.held.some(entry => entry.batch === batch)) throw new Error('the carrier still keeps this array')
    batch.fill(0xee, 0, start)
    this.writes++
    this.held.push({ batch, at: start, end })
    this.#link.take(this)
    if (this.held.length === 0) return true
    this.wasFull = true
    return false
  }
  wasFull = false

  close(): void {
    if (!this.isOpen) return
    // In good order: what was sent still arrives.
    for (const { batch, at, end } of this.held.splice(0)) this.#link.put(this, batch.slice(at, end))
    this.#link.closing(this)
  }

  terminate(): void {
    this.#link.cut()
  }
}

export class Link {
  readonly server: LinkEnd
  readonly client: LinkEnd
  readonly options: LinkOptions
  /** Cuts the link once so many bytes have arrived at the client, or at the server. */
  cutAfter: { readonly end: 'server' | 'client'; readonly bytes: number } | undefined
  #departure = { server: 0, client: 0 }

  constructor(options: LinkOptions) {
    this.options = options
    this.server = new LinkEnd(this, 'server', options.headroom ?? 0)
    this.client = new LinkEnd(this, 'client', options.headroom ?? 0)
  }

  /** Puts on the wire what there is room for. */
  take(end: LinkEnd): void {
    for (let first = end.held[0]; first !== undefined; first = end.held[0]) {
      const room = (this.options.roomBytes ?? Number.POSITIVE_INFINITY) - end.onWireBytes
      const count = Math.min(room, first.end - first.at)
      if (count <= 0) return
      this.put(end, first.batch.slice(first.at, first.at + count))
      first.at += count
      if (first.at === first.end) end.held.shift()
    }
  }

  put(end: LinkEnd, bytes: Uint8Array): void {
    this.options.observer?.sent(end.name, bytes)
    end.onWireBytes += bytes.length
    const { timed } = this.options
    if (timed === undefined) {
      end.wire.push(bytes)
      return
    }
    const { clock, delayMs, bytesPerMs } = timed
    const side = end === this.server ? 'server' : 'client'
    for (let at = 0; at < bytes.length; at += 16_384) {
      const piece = bytes.slice(at, at + 16_384)
      const departure = Math.max(clock.now(), this.#departure[side]) + piece.length / bytesPerMs
      this.#departure[side] = departure
      clock.after(departure - clock.now(), () => this.#left(end, piece.length))
      clock.after(departure + delayMs - clock.now(), () => this.#arrive(end, piece))
    }
  }

  /** Lets what is on the wire arrive, in random slices, and tells full ends that there is room. */
  deliver(): void {
    const { random, largestPiece = 65_536 } = this.options
    for (const end of [this.server, this.client]) {
      const bytes = concat(end.wire.splice(0))
      for (const piece of random.slices(bytes, largestPiece)) {
        end.onWireBytes -= piece.length
        this.#arrive(end, piece)
      }
      this.#makeRoom(end)
    }
  }

  get isQuiet(): boolean {
    return [this.server, this.client].every(
      end => !end.isOpen || (end.wire.length === 0 && end.held.length === 0),
    )
  }

  /** The line goes dead: what was on its way is lost, both ends are told. */
  cut(): void {
    for (const end of [this.server, this.client]) {
      end.wire.length = 0
      end.held.length = 0
      if (!end.isOpen) continue
      end.isOpen = false
      end.handler?.closed(new Error('cut'))
    }
  }

  /** `end` closed in good order: the other end hears of it behind the last bytes. */
  closing(end: LinkEnd): void {
    end.isOpen = false
    const other = end === this.server ? this.client : this.server
    const { timed } = this.options
    if (timed === undefined) {
      for (const bytes of end.wire.splice(0)) this.#arrive(end, bytes)
      end.handler?.closed()
      if (other.isOpen) {
        other.isOpen = false
        other.handler?.closed()
      }
    } else timed.clock.after(timed.delayMs, () => this.cut())
  }

  #left(end: LinkEnd, count: number): void {
    end.onWireBytes -= count
    this.#makeRoom(end)
  }

  #makeRoom(end: LinkEnd): void {
    if (!end.isOpen) return
    this.take(end)
    if (end.wasFull && end.held.length === 0) {
      end.wasFull = false
      end.handler?.drained()
    }
  }

  #arrive(from: LinkEnd, bytes: Uint8Array): void {
    const to = from === this.server ? this.client : this.server
    if (!to.isOpen) return
    const left =
      this.cutAfter?.end === to.name ? this.cutAfter.bytes - to.arrivedBytes : Number.POSITIVE_INFINITY
    const piece = bytes.length > left ? bytes.slice(0, left) : bytes
    to.arrivedBytes += piece.length
    this.options.observer?.arrived(to.name, piece)
    if (piece.length > 0) {
      // What lies around the bytes is none of the session's business.
      const array = new Uint8Array(piece.length + 5).fill(0xee)
      array.set(piece, 3)
      to.handler?.received(array, 3, 3 + piece.length)
      // Theirs until they return: who keeps a view of it has other bytes then.
      array.fill(0xee)
    }
    if (to.arrivedBytes >= (this.cutAfter?.end === to.name ? this.cutAfter.bytes : Number.POSITIVE_INFINITY))
      this.cut()
  }
}

export function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
