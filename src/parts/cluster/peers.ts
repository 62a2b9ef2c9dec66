// The other servers of a cluster: the connections to them, and which of them are alive.

import type { Directory, DirectoryTimes, Node } from '../../directory.ts'
import type { RawOpening, RawPassenger } from '../../server/contracts/servers.ts'
import { isLoopback } from '../../server/settings/address-counter.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import { Shares } from '../../shares.ts'
import { networkOf } from '../../wire/ip-address.ts'
import { Peer, type PeerContext } from './peer.ts'

/** The time in milliseconds for which the directory's list of live servers is reused, because every webhook needs it. */
const ALIVE_MS = 500

interface PeersHost extends PeerContext {
  readonly directory: Directory
  readonly times: DirectoryTimes
}

export class Peers {
  readonly #host: PeersHost
  readonly #all = new Map<string, Peer>()
  /** The servers that the directory does not list as alive, with the time since when. */
  readonly #missing = new Map<string, number>()
  /** The raw visitors and flows that were passed on, counted by the requested tunnel. */
  readonly #raw = new Shares()
  /** The live servers in the directory's last list. */
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

  /** Returns one of these servers that can be reached now. `undefined` if there is none. */
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

  /** Passes a raw visitor to one of the servers, as `Peer.pass`. `undefined` if none can be reached now. */
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

  /** Returns whether the last connection to the server succeeded (true before the first), and what is in progress there. */
  stateOf(id: string): { readonly isReachable: boolean; readonly inFlight: number } {
    const peer = this.#all.get(id)
    return { isReachable: peer?.isDown !== true, inFlight: peer?.inFlight ?? 0 }
  }

  /** The number of requests and raw visitors in progress that were sent to them. */
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

  /** Reads the list of servers, less often than heartbeats are sent: it grows with the servers, and each of them reads it. */
  async look(): Promise<void> {
    const { directory, times } = this.#host
    if (this.#all.size === 0 || performance.now() - this.#listedAt < times.nodeMs) return
    this.lookAfter(await directory.nodes())
    this.#listedAt = performance.now()
  }

  /**
   * Forgets a server without heartbeats in the directory for `leaseMs`. Requests in progress there are cut only if it
   * is also silent when asked, as a frozen one is: others may only have lost the directory, or be stopping. `alive`
   * is `undefined` if the directory does not respond.
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
      // The server stayed in the list for `nodeMs` after its last heartbeat.
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
