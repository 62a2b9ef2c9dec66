// This server as one of a cluster: sends heartbeats, holds names for its clients, and finds the servers of all other names.

import { randomBytes } from 'node:crypto'
import { hostname, networkInterfaces } from 'node:os'
import type { Directory, DirectoryTimes, Node, Place } from '../../directory.ts'
import { type ErrorCode, messageOf, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import type { Arrival } from '../../server/contracts/front.ts'
import type { PartServer, WholeServer } from '../../server/contracts/part.ts'
import type { RawWish } from '../../server/contracts/raw-visit.ts'
import type {
  Claimed,
  ClusterMember,
  RawOpening,
  RawPassenger,
  RawTaker,
  Servers,
  Shared,
} from '../../server/contracts/servers.ts'
import type { Upstream } from '../../server/contracts/upstream.ts'
import type { ClusterOptions, PeerTls } from '../../server/settings/part-options.ts'
import { hash } from '../../server/tunnels/pool.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { FarPorts } from './far-ports.ts'
import { Holds } from './holds.ts'
import { CLUSTER_TIMES } from './options.ts'
import { PeerSecret } from './peer-secret.ts'

import { Peers } from './peers.ts'
import { Places } from './places.ts'
import { RawArrival } from './raw-arrival.ts'
import { Tables } from './tables.ts'

/** The time in milliseconds after which a waiting request searches for its name again. */
const LOOK_AGAIN_MS = 100

export class Cluster implements Servers {
  /** Contains the host name, for operators. The rest differs between starts, and between servers of one host. */
  readonly node: string = `${hostname()
    .split('.', 1)[0]
    ?.replace(/[^\w-]/g, '')}-${randomBytes(5).toString('hex')}`
  /** The tables of all servers. `undefined` if they share files instead. */
  readonly tables: Tables | undefined
  /** The shared data, once it is loaded. */
  shared: Shared | undefined
  readonly #server: PartServer
  readonly #whole: WholeServer
  readonly #directory: Directory
  readonly #times: DirectoryTimes
  readonly #peerTls: PeerTls | undefined
  readonly #places: Places
  readonly #holds: Holds
  /** `undefined`: the servers are of one machine, have the same ports, and the one that has the tunnel listens. */
  readonly #farPorts: FarPorts | undefined
  readonly #peers: Peers
  #url = ''
  readonly #secret: PeerSecret
  #waiting = 0
  /** Claims that came too early for a new directory. Each continues at its time, or when this server leaves. */
  readonly #early = new Set<() => void>()
  #stopListening: (() => void) | undefined
  #stopBeating: (() => void) | undefined
  #restoredAt = 0
  /** The time of the last request for the ports of other servers. */
  #lookedAt = Number.NEGATIVE_INFINITY
  /**
   * The number of times when the directory may have lost this server's data, and the last of them after which it got
   * the data again.
   */
  #doubts = 0
  #cleared = 0
  #isFailing = false
  #isOver = false

  constructor(options: ClusterOptions, server: PartServer, whole: WholeServer) {
    const { directory, peerTls, secret = '', whenUnreachable = 'refuse', times } = options
    this.#peerTls = peerTls
    this.#server = server
    this.#whole = whole
    this.#directory = directory
    this.#times = { ...CLUSTER_TIMES, ...times }
    this.#secret = new PeerSecret(secret, this.#times.earlyMs)
    this.#peers = new Peers({ server, directory, times: this.#times, peerTls, secret: this.#secret })
    this.#places = new Places(directory)
    this.tables = directory.tables && new Tables(directory.tables, error => server.failed(error))
    this.#holds = new Holds({
      node: this.node,
      directory,
      times: this.#times,
      whenUnreachable,
      lost: name => server.lost(name),
      failed: error => this.#failed(error),
      wait: ms => this.#wait(ms),
    })
    if (options.peerUrl?.startsWith('unix:') !== true)
      this.#farPorts = new FarPorts(this.node, directory, server, whole.ports)
  }

  /** Joins the cluster. `url`: where other servers reach this one. Rejects with `CLUSTER_UNREACHABLE`. */
  async start(url: string): Promise<void> {
    this.#url = url
    try {
      await this.#secret.agree(this.#directory, freshSecret)
      this.#stopListening = await this.#directory.listen({
        changed: (name, node, epoch) => {
          this.#places.changed(name, node)
          if (!this.#isOver) this.#farPorts?.changed(name, node)
          this.#holds.changed(name, node, epoch)
          if (node !== '' && node !== this.node) this.#whole.claimedElsewhere(name)
        },
        reconnected: () => {
          this.#places.doubt()
          this.#lookedAt = Number.NEGATIVE_INFINITY
          this.tables?.doubt()
          void this.#beat()
        },
      })
      await this.#sayAlive()
      await this.tables?.start()
    } catch (cause) {
      this.#stopListening?.()
      this.tables?.stop()
      throw this.#unreachable(cause)
    }
    this.#restoredAt = performance.now()
    this.#beatLater()
  }

  get isOneMachine(): boolean {
    return this.#farPorts === undefined
  }

  /** Opens the ports of other servers' tunnels, once this server listens. */
  async openPorts(): Promise<void> {
    this.#farPorts?.start()
    await this.#lookAtPorts().catch((error: Error) => this.#failed(error))
  }

  /** Leaves the cluster. Its names stay reserved for its clients, which go to other servers. */
  leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#holds.leave()
    this.#farPorts?.stop()
    for (const goOn of [...this.#early]) goOn()
    this.#stopBeating?.()
    this.#directory.leave(this.node).catch((error: Error) => this.#failed(error))
  }

  /** Whether this server is stopping, so that the others use another one. */
  get isLeaving(): boolean {
    return this.#isOver
  }

  /** Stops, and cuts requests to other servers. */
  stop(): void {
    this.leave()
    this.#stopListening?.()
    this.tables?.stop()
    this.#peers.close()
  }

  // ── Signs of life ──────────────────────────────────────────────────────────────────────────────────────────

  #beatLater(): void {
    this.#stopBeating?.()
    if (this.#isOver) return
    this.#stopBeating = eventLoop.after(this.#times.nodeMs / 3, () => void this.#beat())
  }

  async #beat(): Promise<void> {
    try {
      if (!(await this.#sayAlive())) this.#doubts++
      const doubts = this.#doubts
      const isDoubtful = doubts > this.#cleared
      const isDue = performance.now() - this.#restoredAt > this.#times.holdMs / 3
      if (isDoubtful) {
        this.tables?.doubt()
        this.#lookedAt = Number.NEGATIVE_INFINITY
        await this.#secret.agree(this.#directory, freshSecret)
      }
      if (isDoubtful || isDue || this.#holds.isBehind) await this.#restore()
      this.#cleared = Math.max(this.#cleared, doubts)
      await this.tables?.look()
      await this.#lookAtPorts()
      await this.#peers.look()
      this.#isFailing = false
    } catch (error) {
      this.#failed(error as Error)
      this.#peers.lookAfter()
    }
    this.#beatLater()
  }

  async #sayAlive(): Promise<boolean> {
    const node = { id: this.node, url: this.#url }
    const beat = await this.#directory.beat(node, this.#times, this.#holds.highestEpoch)
    this.#holds.saw(beat.highestEpoch)
    return beat.isKnown
  }

  async #lookAtPorts(): Promise<void> {
    const now = performance.now()
    if (this.#farPorts === undefined || this.#isOver) return
    if (now - this.#lookedAt < this.#times.leaseMs) return this.#farPorts.tryAgain()
    this.#lookedAt = now
    await this.#farPorts.look()
  }

  async #restore(): Promise<void> {
    await this.#holds.restore()
    this.#restoredAt = performance.now()
  }

  /** Makes the error, with the directory's own words. Workers have no Redis, so there is nothing to check there. */
  #unreachable(cause: unknown): TunnelError {
    const detail =
      this.#directory.explain?.(cause) ??
      `The directory of the cluster cannot be reached: ${messageOf(cause)}.`
    const action = this.isOneMachine ? '' : this.#directory.adviceFor?.(cause)
    return new TunnelError('CLUSTER_UNREACHABLE', detail, { cause, action })
  }

  /** Reports an error, once for each time that the directory becomes unreachable. */
  #failed(error: Error): void {
    this.#doubts++
    if (this.#isFailing) return
    this.#isFailing = true
    this.#server.failed(this.#unreachable(error))
  }

  // ── Names of this server ───────────────────────────────────────────────────────────────────────────────────

  claim(
    names: readonly string[],
    resume: string | undefined,
    isShared: boolean,
    isTls = false,
  ): Promise<Claimed | ErrorCode> {
    return this.#isOver
      ? Promise.resolve('SERVER_DRAINING')
      : this.#holds.claim(names, resume, isShared, isTls)
  }

  #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const goOn = (): void => {
      cancel()
      this.#early.delete(goOn)
      resolve()
    }
    const cancel = eventLoop.after(ms, goOn)
    this.#early.add(goOn)
    return promise
  }

  release(name: string): void {
    this.#holds.release(name)
  }

  async members(): Promise<readonly ClusterMember[]> {
    const nodes = await this.#directory.nodes().catch((cause: unknown) => {
      throw this.#unreachable(cause)
    })
    return nodes.map(({ id, url }) => {
      return { id, url, isSelf: id === this.node, ...this.#peers.stateOf(id) }
    })
  }

  /** Whether the last heartbeat succeeded. */
  get isInTouch(): boolean {
    return !this.#isFailing
  }

  get inFlight(): number {
    return this.#peers.inFlight
  }

  // ── Names of other servers ─────────────────────────────────────────────────────────────────────────────────

  find(name: string): readonly Place[] | Promise<readonly Place[]> | undefined {
    const found = this.#places.find(name)
    return found instanceof Promise ? found.then(nodes => this.#others(nodes)) : found && this.#others(found)
  }

  /** Whether the name is this server's but its tunnel is not there yet, because the directory's grant is in transit. */
  isComing(name: string): boolean {
    return this.#holds.mayHave(name)
  }

  #others(nodes: readonly Place[]): readonly Place[] {
    return nodes.filter(({ id }) => id !== this.node)
  }

  upstreamTo(nodes: readonly Node[]): Upstream | undefined {
    return this.#peers.among(nodes)?.upstream
  }

  accept(socket: Socket, wish: RawWish, raw: RawTaker, first: Uint8Array | undefined): SocketHandler {
    const arrival = new RawArrival(socket, wish, this, raw, first)
    arrival.start()
    return arrival
  }

  pass(
    nodes: readonly Node[],
    passenger: RawPassenger,
    handler: StreamHandler,
    opening: RawOpening,
  ): ByteStream | 'TUNNEL_BUSY' | undefined {
    return this.#peers.pass(nodes, passenger, handler, opening)
  }

  othersWith(name: string): readonly Upstream[] | Promise<readonly Upstream[]> {
    const reach = (nodes: readonly Node[]): readonly Upstream[] =>
      nodes.flatMap(node => this.upstreamTo([node]) ?? [])
    const found = this.find(name)
    return found instanceof Promise ? found.then(reach, () => []) : reach(found ?? [])
  }

  /**
   * Returns the upstream to the server that stores webhooks for a name without a server: the same one for all servers
   * while none comes or goes. `undefined` if it is this one, or cannot be reached. Servers with a common store have
   * no tables, and each may store webhooks.
   */
  async keeperOf(name: string): Promise<Upstream | undefined> {
    if (this.tables === undefined) return undefined
    let keeper: Node | undefined
    let highest = -1
    for (const node of await this.#peers.now()) {
      const lot = hash(`${node.url} ${name}`)
      if (lot <= highest) continue
      highest = lot
      keeper = node
    }
    return keeper === undefined || keeper.id === this.node ? undefined : this.upstreamTo([keeper])
  }

  isFirst(name: string): boolean | Promise<boolean> {
    const found = this.#places.find(name)
    const isFirst = (nodes: readonly Node[] | undefined): boolean => nodes?.[0]?.id === this.node
    return found instanceof Promise ? found.then(isFirst) : isFirst(found)
  }

  forget(name: string): void {
    this.#places.forget(name)
  }

  /**
   * Waits for a name. Calls `ready` once it can be reached, here or on another server, or `tooLate` after the time
   * that requests wait for a client. Returns a function that ends the wait; `undefined` if too many wait, or this
   * request has waited that long. `since`: the beginning of its first wait, on the clock of `performance.now()`.
   */
  awaitName(name: string, since: number, ready: () => void, tooLate: () => void): (() => void) | undefined {
    const { maxHeldRequests, holdTimeoutMs } = this.#server.limits
    const until = since + holdTimeoutMs
    if (this.#waiting >= maxHeldRequests || holdTimeoutMs === 0 || performance.now() > until) return undefined
    this.#waiting++
    let isOver = false
    let cancel = (): void => {}
    const end = (then?: () => void): void => {
      if (isOver) return
      isOver = true
      this.#waiting--
      cancel()
      then?.()
    }
    const look = async (): Promise<void> => {
      const isHere = this.#server.isServedHere(name)
      const nodes = isHere ? [] : await Promise.resolve(this.find(name)).catch(() => undefined)
      if (isOver) return
      if (isHere || (nodes !== undefined && this.upstreamTo(nodes) !== undefined)) return end(ready)
      if (performance.now() > until || this.#isOver) return end(tooLate)
      cancel = eventLoop.after(LOOK_AGAIN_MS, () => void look())
    }
    cancel = eventLoop.after(LOOK_AGAIN_MS, () => void look())
    return () => end()
  }

  // ── From other servers ─────────────────────────────────────────────────────────────────────────────────────

  /** Whether the request came on a port that servers of the cluster may use. */
  mayBePeer({ from }: Pick<Arrival, 'from'>): boolean {
    return this.#peerTls === undefined || from?.isPeers === true
  }

  /** Whether a server of the cluster made the proof, for the connection with this number. */
  isProof(proof: string, number: string): boolean {
    return this.#secret.isProof(proof, this.node, number)
  }
}

function freshSecret(): string {
  return randomBytes(32).toString('base64url')
}

/**
 * Returns the URL at which others reach a server that listens on `hostname`: that address, or the first of this
 * machine that is not loopback.
 */
export function peerUrlOf(hostname: string, port: number, isTls: boolean): string {
  const isAny = hostname === '' || hostname === '::' || hostname === '0.0.0.0'
  const own = Object.values(networkInterfaces()).flatMap(all => all ?? [])
  const address = isAny
    ? (own.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1')
    : hostname
  return `${isTls ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}
