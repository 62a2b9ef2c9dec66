// The upstream for names of another server of the cluster.

import type { Node } from '../../directory.ts'
import type { PartServer } from '../../server/contracts/part.ts'
import type { RawOpening, RawPassenger } from '../../server/contracts/servers.ts'
import type { Upstream, Visit } from '../../server/contracts/upstream.ts'
import { type Bounds, longestResponseMs } from '../../server/settings/bounds.ts'
import type { PeerTls } from '../../server/settings/part-options.ts'
import { writeHeadWithLine } from '../../server/upstreams/request-sender.ts'
import { IdleStreams, StreamsUpstream } from '../../server/upstreams/streams.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Address } from '../../socket.ts'
import { PeerChannel, type PeerChannelHost } from './peer-channel.ts'
import type { PeerSecret } from './peer-secret.ts'
import {
  FRAMED_PROTOCOL,
  greeting,
  isMoved,
  PEER_PROTOCOL,
  passengerLines,
  RAW_PROTOCOL,
  visitorLine,
} from './peer-wire.ts'

/** The time in milliseconds after which an unreachable server is tried again. */
const DOWN_MS = 500

/**
 * The time in milliseconds without a request after which a connection is closed. A server that stops closes
 * connections idle for `drainIdleMs`, by default 1 s, which loses a request in transit. So this side closes earlier.
 */
const IDLE_MS = 500

/** The handler of a stream of which only a reply matters. */
const UNHEARD: StreamHandler = { received() {}, writable() {}, ended() {}, reset() {} }

const NOWHERE: Address = { host: '', port: 0 }

export interface PeerContext {
  readonly server: Pick<PartServer, 'limits' | 'deadlines' | 'turns' | 'settings' | 'failed'>
  readonly secret: PeerSecret
  /** The certificates that this server shows and requires. `undefined` without mutual TLS. */
  readonly peerTls: PeerTls | undefined
}

export class Peer implements PeerChannelHost {
  readonly upstream: Upstream
  readonly address: Address
  readonly isFramed: boolean
  readonly #node: Node
  readonly #context: PeerContext
  readonly #channels = new Set<PeerChannel>()
  /** The raw visitors and flows, with the callbacks for their end. */
  readonly #raw = new Map<PeerChannel, () => void>()
  #downUntil = 0
  #isSilent = false
  #isGone = false

  constructor(node: Node, context: PeerContext) {
    this.#node = node
    this.#context = context
    const address = addressOf(node.url, context)
    if (address === undefined) {
      this.failed(new Error('the directory has no URL of it'))
      this.#downUntil = Number.POSITIVE_INFINITY
    }
    this.address = address ?? NOWHERE
    this.isFramed = this.address.unix !== undefined
    let given: Bounds | undefined
    let own = context.server.limits
    const limitsOf = (limits: Bounds): Bounds => {
      // The server with the tunnel limits the time for its response.
      const [streamIdleMs, originTimeoutMs] = [
        Math.min(limits.streamIdleMs, IDLE_MS),
        longestResponseMs(limits),
      ]
      if (limits !== given) own = { ...limits, streamIdleMs, originTimeoutMs }
      given = limits
      return own
    }
    const connections = {
      isClosed: false,
      open: (_tunnel: number, handler: StreamHandler) => this.#open(handler),
    }
    this.upstream = new StreamsUpstream({
      // Connections replace the streams of a session, which does not exist here.
      session: connections as never,
      apps: connections,
      tunnel: 0,
      server: {
        get limits() {
          return limitsOf(context.server.limits)
        },
        deadlines: context.server.deadlines,
        turns: context.server.turns,
      },
      isShared: true,
      rewrite: undefined,
      proxyProtocol: undefined,
      peer: { writeHead, isMoved },
      idle: new IdleStreams(),
      isStopped: false,
    })
  }

  get url(): string {
    return this.#node.url
  }

  /** Whether the server could not be reached a short time ago, or never can be. */
  get isDown(): boolean {
    return performance.now() < this.#downUntil
  }

  #open(handler: StreamHandler): ByteStream | undefined {
    if (this.#isGone) return undefined
    const protocol = this.isFramed ? FRAMED_PROTOCOL : PEER_PROTOCOL
    const channel = new PeerChannel(this, this.#greeter(protocol), handler)
    this.#channels.add(channel)
    return channel
  }

  /**
   * Sends a raw visitor to that server. Its handler is reset with `CLUSTER_MOVED` if the server does not hold the
   * name any more, and with `CLIENT_GONE` if it cannot be reached; before `opened`, another server may be tried.
   * `over` is called when the visitor is gone.
   */
  pass(
    passenger: RawPassenger,
    handler: StreamHandler,
    raw: RawOpening,
    over: () => void,
  ): ByteStream | undefined {
    if (this.#isGone) return undefined
    const greet = this.#greeter(RAW_PROTOCOL, passengerLines(passenger))
    const channel = new PeerChannel(this, greet, handler, raw)
    this.#channels.add(channel)
    this.#raw.set(channel, over)
    return channel
  }

  /** Returns the function that makes the greeting, once the number of the connection is known. */
  #greeter(protocol: string, lines?: string): (number: string) => Uint8Array {
    const { server, secret } = this.#context
    return number => {
      const proof = number === '' ? '' : secret.proofFor(this.#node.id, number)
      return greeting(controlHostOf(server), proof, protocol, lines)
    }
  }

  /** Asks for a sign of life; `isSilent` has the result. */
  probe(): void {
    this.#open(UNHEARD)?.end()
  }

  /**
   * Whether the server, or its machine, accepted the last connection and sent nothing. A machine that refuses it is
   * alive, and its server is stopping.
   */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** The number of requests, raw visitors and flows there. */
  get inFlight(): number {
    return this.upstream.inFlight + this.#raw.size
  }

  failed(error: Error | undefined, isSilent = false): void {
    if (!this.isDown)
      this.#context.server.failed(
        new Error(`the server at ${this.#node.url} cannot be reached: ${error?.message ?? 'closed'}`),
      )
    this.#downUntil = performance.now() + DOWN_MS
    this.#isSilent = isSilent
  }

  greeted(): void {
    this.#downUntil = 0
    this.#isSilent = false
  }

  gone(channel: PeerChannel): void {
    this.#channels.delete(channel)
    const over = this.#raw.get(channel)
    if (this.#raw.delete(channel)) over?.()
  }

  /** Closes all connections, because this server stops. */
  close(): void {
    this.#isGone = true
    for (const channel of [...this.#channels]) channel.cut()
  }
}

/**
 * Writes the head as the visitor sent it, with a line that describes the visitor. The other server treats it as its
 * own visitor's.
 */
function writeHead(visit: Visit): number {
  const { address, proto } = visit.hop(undefined)
  return writeHeadWithLine(
    visit,
    visitorLine({ ...visit.from, address, proto, isCertified: visit.isCertified === true }),
  )
}

const controlHostOf = ({ settings }: Pick<PartServer, 'settings'>): string =>
  settings.domains[0] ?? 'localhost'

/** Returns the address of a URL. `undefined` if servers cannot be reached at such a URL. */
function addressOf(url: string, { server, peerTls }: PeerContext): Address | undefined {
  const parsed = URL.parse(url)
  if (parsed === null) return undefined
  const { hostname, port, protocol, pathname } = parsed
  if (protocol === 'unix:') return { unix: pathname }
  const isTls = protocol === 'https:'
  if (!isTls && protocol !== 'http:') return undefined
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isTls ? 443 : 80) : Number(port),
    ...(isTls && { tls: { serverName: controlHostOf(server), ...peerTls } }),
  }
}
