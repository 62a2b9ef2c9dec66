// Link connections in memory, beside a carrier in memory: what arrives first, the test decides.

import type { SessionOptions } from '../../src/session/contract.ts'
import { Link } from '../../src/session/link.ts'
import type { Socket, SocketHandler } from '../../src/socket.ts'
import { concat, type LinkOptions } from './link.ts'
import type { Random } from './random.ts'
import { Pair } from './sessions.ts'

/** One end of a connection in memory. Takes `roomBytes`; a paused reader leaves bytes where they are. */
export class WireEnd implements Socket {
  readonly remoteAddress = 'memory'
  handler: SocketHandler | undefined
  other!: WireEnd // set by `wire`
  isPaused = false
  isOpen = true
  wasFull = false
  /** Bytes on their way from here, and all that ever left. */
  onWire: Uint8Array = new Uint8Array(0)
  readonly #roomBytes: number

  constructor(roomBytes: number) {
    this.#roomBytes = roomBytes
  }

  endpoints(): undefined {}

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (!this.isOpen) return 0
    const taken = Math.min(end - start, this.#roomBytes - this.onWire.length)
    this.onWire = concat([this.onWire, bytes.subarray(start, start + taken)])
    if (taken < end - start) this.wasFull = true
    return taken
  }

  end(): void {
    throw new Error('a link is never half-closed')
  }

  /** RST: what is on its way is lost, both ways. */
  terminate(): void {
    this.isOpen = false
    this.onWire = new Uint8Array(0)
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  /** Lets some of the bytes on their way from here arrive. */
  deliver(random: Random): void {
    const { other } = this
    if (!this.isOpen && other.isOpen) {
      other.isOpen = false
      return other.handler?.closed(new Error('reset'))
    }
    const count = random.chance(0.5) ? this.onWire.length : random.below(this.onWire.length + 1)
    if (count > 0 && !other.isPaused) {
      const bytes = this.onWire.slice(0, count)
      this.onWire = this.onWire.slice(count)
      for (const piece of random.slices(bytes, random.pick([9, 4000, 65_536, 524_288]))) {
        if (!other.isOpen) break
        // A pause does not take back what was read already: one read at most.
        other.handler?.received(piece)
      }
    }
    if (this.wasFull && this.isOpen && this.onWire.length < this.#roomBytes) {
      this.wasFull = false
      this.handler?.drained()
    }
  }

  /** Nothing more can happen without one of the ends. */
  get isQuiet(): boolean {
    if (!this.isOpen) return !this.other.isOpen
    return (this.onWire.length === 0 || this.other.isPaused) && !(this.wasFull && this.onWire.length === 0)
  }
}

/** Two sessions with links between them. */
export class LinkedPair extends Pair {
  readonly wires: { readonly server: WireEnd; readonly client: WireEnd; readonly number: number }[] = []
  readonly #random: Random
  readonly #roomBytes: number

  constructor(
    random: Random,
    roomBytes: number,
    link: Partial<LinkOptions>,
    options?: Partial<SessionOptions>,
  ) {
    super({ random, ...link }, options)
    this.#random = random
    this.#roomBytes = roomBytes
  }

  /** One more link that both ends know of. */
  addLink(): { readonly server: Link; readonly client: Link } {
    const number = this.wires.length + 1
    const [server, client] = [new WireEnd(this.#roomBytes), new WireEnd(this.#roomBytes)]
    server.other = client
    client.other = server
    this.wires.push({ server, client, number })
    const links = {
      server: new Link(number, server, this.server.links),
      client: new Link(number, client, this.client.links),
    }
    server.handler = links.server.socketHandler
    client.handler = links.client.socketHandler
    this.server.links.add(links.server)
    this.client.links.add(links.client)
    return links
  }

  /** Some of what is on the links arrives. */
  stepLinks(): void {
    for (const { server, client } of this.wires) {
      server.deliver(this.#random)
      client.deliver(this.#random)
    }
  }

  /** Only the carrier moves. */
  settleCarrier(): void {
    super.settle()
  }

  override settle(): void {
    for (let steps = 0; ; steps++) {
      if (steps > 100_000) throw new Error('it never settles')
      super.settle()
      if (this.wires.every(({ server, client }) => server.isQuiet && client.isQuiet)) return
      this.stepLinks()
    }
  }

  /** The network loses one link; both ends learn of it in their own time. */
  cutLink(index: number): void {
    const wire = this.wires[index]
    if (wire === undefined) return
    for (const end of [wire.server, wire.client]) {
      end.onWire = new Uint8Array(0)
      if (!end.isOpen) continue
      end.isOpen = false
      end.handler?.closed(new Error('cut'))
    }
  }
}
