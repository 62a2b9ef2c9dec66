// The other servers of a cluster as this one reaches them: connections to them, and which of them live.

import type { Directory, DirectoryTimes, Node } from '../../directory.ts'
import type { RawOpening, RawPassenger } from '../../server/contracts/servers.ts'
import { isLoopback } from '../../server/settings/address-counter.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import { Shares } from '../../shares.ts'
import { networkOf } from '../../wire/ip-address.ts'
import { Peer, type PeerContext } from './peer.ts'

/** The time in milliseconds for which the directory's list of live servers is trusted: many webhooks ask, each time. */
const ALIVE_MS = 500

export interface PeersHost extends PeerContext {
  readonly directory: Directory
  readonly times: DirectoryTimes
}

export class Peers {
  readonly #host: PeersHost
  readonly #all = new Map<string, Peer>()
  /** The servers that the directory does not list as alive, and since when. */
  readonly #missing = new Map<string, number>()
  /** The raw visitors and flows that were sent on, by the tunnel that they want. */
  readonly #raw = new Shares()
  /** The live servers in the last list of the directory. */
  #alive: Promise<readonly Node[]> = Promise.resolve([])
  #aliveAt = Number.NEGATIVE_INFINITY
  /** The time when the list was requested. */
  #listedAt = Number.NEGATIVE_INFINITY

  constructor(host: PeersHost) {
    this.#host = host
  }

  close(): void {
    for (const peer of this.#all.values()) peer.close()
    this.#all.clear()
  }

  /** Returns one of these servers that can be reached now. */
  among(nodes: readonly Node[]): Peer | undefined {
    const alive = nodes.filter(({ id, url }) => url !== '' && this.#all.get(id)?.isDown !== true)
    const node = alive[Math.floor(Math.random() * alive.length)]
    const peer = node && this.#of(node)
    return peer?.isDown === true ? undefined : peer
  }

  #of(node: Node): Peer {
    const known = this.#all.get(node.id)
    if (known !== undefined && known.url === node.url) return known
    const peer = new Peer(node, this.#host)
    this.#all.set(node.id, peer)
    return peer
  }

  /** Passes a raw visitor to one of the servers, like `Peer.pass`. `undefined`: none of them can be reached just now. */
  pass(
    nodes: readonly Node[],
    passenger: RawPassenger,
    handler: StreamHandler,
    opening: RawOpening,
  ): ByteStream | 'TUNNEL_BUSY' | undefined {
    const wanted = `${passenger.kind} ${passenger.wanted}`
    const network = networkOf(passenger.endpoints.source.address)
    const visitor = isLoopback(network) ? '' : network
    if (!this.#raw.take(wanted, visitor, 1, this.#host.server.limits.maxPeerStreams)) return 'TUNNEL_BUSY'
    const over = () => this.#raw.give(wanted, visitor, 1)
    const stream = this.among(nodes)?.pass(passenger, handler, opening, over)
    if (stream === undefined) over()
    return stream
  }

  /** Whether the last connection to it could be made, if there was any, and what is in progress to it. */
  stateOf(id: string): { readonly isReachable: boolean; readonly inFlight: number } {
    const peer = this.#all.get(id)
    return { isReachable: peer?.isDown !== true, inFlight: peer?.inFlight ?? 0 }
  }

  /** Requests and raw visitors that were sent on to them, and are in progress. */
  get inFlight(): number {
    let count = 0
    for (const { inFlight } of this.#all.values()) count += inFlight
    return count
  }

  // ── Which of them live ─────────────────────────────────────────────────────────────────────────────────────

  /** Returns the live servers; none while the directory cannot be reached. */
  now(): Promise<readonly Node[]> {
    if (performance.now() - this.#aliveAt < ALIVE_MS) return this.#alive
    this.#aliveAt = performance.now()
    this.#alive = this.#host.directory.nodes().catch(() => [])
    return this.#alive
  }

  /** The list grows with the servers, and each of them asks for it: not with every sign of life. */
  async look(): Promise<void> {
    const { directory, times } = this.#host
    if (this.#all.size === 0 || performance.now() - this.#listedAt < times.nodeMs) return
    this.lookAfter(await directory.nodes())
    this.#listedAt = performance.now()
  }

  /**
   * A server without signs of life in the directory for `leaseMs` is forgotten. Requests in progress to it are cut only if it
   * is also silent when it is asked, as a frozen one is: others may be cut off from the directory, or stop. `alive`
   * `undefined`: the directory does not say.
   */
  lookAfter(alive?: readonly Node[]): void {
    const { leaseMs, nodeMs } = this.#host.times
    const now = performance.now()
    const listed = new Set(alive?.map(({ id }) => id))
    for (const [id, peer] of this.#all) {
      if (listed.has(id)) {
        this.#missing.delete(id)
        continue
      }
      // The server stayed in the list for `nodeMs`.
      const since = this.#missing.get(id) ?? (alive === undefined ? now : now - nodeMs)
      this.#missing.set(id, since)
      const isIdle = peer.inFlight === 0
      if (now - since >= leaseMs && (isIdle || peer.isSilent)) {
        this.#missing.delete(id)
        this.#all.delete(id)
        peer.close()
      } else if (!isIdle) peer.probe()
    }
  }
}
