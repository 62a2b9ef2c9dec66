// The parts of one server, in the order in which requests pass their layers.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { RecentRow } from '../../measures.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Register, Wishes } from '../../wire/control.ts'
import type { Arrival, Route } from '../contracts/front.ts'
import type { LaneAsking, LaneClause } from '../contracts/laning.ts'
import type { Ending, LayeredTunnel, NameRouter, Router, TunnelRequest } from '../contracts/layer.ts'
import type {
  MissedRequest,
  Note,
  Onward,
  Part,
  RawFollower,
  Registrant,
  WholeServer,
  WrappedSocket,
} from '../contracts/part.ts'
import type { AdmittedVisitor, ListenerTerms, PartListener, Protocol } from '../contracts/protocol.ts'
import type { RawVisit } from '../contracts/raw-visit.ts'
import type { AppsTerms, StreamsApps } from '../contracts/streams-context.ts'
import type { OpenTable } from '../contracts/tables.ts'
import type { TunnelUpstream, Upstream } from '../contracts/upstream.ts'
import type { Adopt } from '../contracts/wire.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { Connecting } from '../tunnels/tunnel.ts'

/** The routing behind all layers. */
const ARRIVED: Router = request => request.arrived()

interface RoutedTunnel extends LayeredTunnel {
  /** The router. `undefined` until it is made. */
  router: Router | undefined
}

export class Parts {
  #all: readonly Part[] = []
  /** The routing of requests to names without a tunnel here. */
  nameRouter: NameRouter = named => named.here()

  use(parts: readonly Part[]): void {
    this.#all = parts
    this.nameRouter = parts
      .flatMap(({ nameLayer }) => nameLayer ?? [])
      .reduceRight((next, layer) => layer(next), this.nameRouter)
  }

  /** Returns the routing of a tunnel, which is made once and again after a change. */
  routerFor(tunnel: RoutedTunnel): Router {
    tunnel.router ??= this.#all
      .flatMap(({ layer }) => layer ?? [])
      .reduceRight((next, layer) => layer(next, tunnel), ARRIVED)
    return tunnel.router
  }

  judge(address: string): ErrorCode | undefined {
    let code: ErrorCode | undefined
    for (const part of this.#all) code ??= part.judge?.(address)
    return code
  }

  isBlocked(name: string): boolean {
    return this.#all.some(part => part.isBlocked?.(name))
  }

  enterPort(
    socket: Socket,
    admitted: AdmittedVisitor | undefined,
    accept: Onward,
  ): SocketHandler | undefined {
    let handler: SocketHandler | undefined
    for (const part of this.#all) handler ??= part.enterPort?.(socket, admitted, accept)
    return handler
  }

  /** Routes a switch of protocols with `Part.enter` of the first part that knows the protocol. */
  enter(arrival: Arrival): Route | undefined {
    let route: Route | undefined
    for (const part of this.#all) route ??= part.enter?.(arrival)
    return route
  }

  kept(name: string, token: string | undefined, head: RequestHead, address: string): Upstream | undefined {
    let upstream: Upstream | undefined
    for (const part of this.#all) upstream ??= part.kept?.(name, token, head, address)
    return upstream
  }

  registered(tunnel: LayeredTunnel, by: Registrant): void {
    for (const part of this.#all) part.registered?.(tunnel, by)
  }

  /** Returns why one of these options cannot be granted. `undefined` if all can. */
  refusalOf({ wishes, routes = [] }: Pick<Register, 'wishes' | 'routes'>): TunnelError | undefined {
    for (const [name, wish] of [{ wishes }, ...routes].flatMap(one => Object.entries(one.wishes ?? {}))) {
      const check = this.#all.find(part => Object.hasOwn(part.wishes ?? {}, name))?.wishes?.[name]
      if (check === undefined)
        return new TunnelError(
          'FEATURE_UNSUPPORTED',
          `The server does not know the option ${name.slice(0, 64)}.`,
        )
      const refusal = check(wish)
      const action = 'Change the option, or ask the operator.'
      if (refusal !== undefined) return new TunnelError('FEATURE_UNSUPPORTED', refusal, { action })
    }
    return undefined
  }

  closed(name: string): boolean {
    return this.#all.map(part => part.closed?.(name)).includes(true)
  }

  claimedElsewhere(name: string): void {
    for (const part of this.#all) part.claimedElsewhere?.(name)
  }

  /** The JSON wire. `undefined` if clients must negotiate the streams wire. */
  get adopt(): Adopt | undefined {
    return this.#all.find(({ adopt }) => adopt !== undefined)?.adopt
  }

  /** Finds a version of HTTP other than 1.1 that visitors may use now. */
  protocol(isIt: (protocol: Protocol) => boolean): Protocol | undefined {
    return this.#all.find(({ protocol }) => protocol?.isSpoken === true && isIt(protocol))?.protocol
  }

  async open(terms: ListenerTerms, opened: (door: PartListener) => void): Promise<void> {
    for (const part of this.#all) {
      const door = await part.open?.(terms)
      if (door !== undefined) opened(door)
    }
  }

  get appsOf(): ((terms: AppsTerms) => StreamsApps) | undefined {
    return this.#all.find(({ appsOf }) => appsOf !== undefined)?.appsOf
  }

  before(upstream: TunnelUpstream, wishes: Wishes = {}): TunnelUpstream {
    return this.#all.reduceRight((inner, part) => part.before?.(inner, wishes) ?? inner, upstream)
  }

  get connecting(): Connecting | undefined {
    return this.#all.find(({ connecting }) => connecting !== undefined)?.connecting
  }

  get url(): string | undefined {
    return this.#all.find(part => part.url !== undefined)?.url
  }

  recent(): RecentRow | undefined {
    let recent: RecentRow | undefined
    for (const part of this.#all) recent ??= part.recent?.()
    return recent
  }

  ended(tunnel: LayeredTunnel, request: TunnelRequest, ending: Ending): void {
    for (const part of this.#all) part.ended?.(tunnel, request, ending)
  }

  missed(request: MissedRequest): void {
    for (const part of this.#all) part.missed?.(request)
  }

  noted(note: Note): void {
    for (const part of this.#all) part.noted?.(note)
  }

  followRaw(visit: RawVisit): readonly RawFollower[] {
    return this.#all.flatMap(part => part.followRaw?.(visit) ?? [])
  }

  /** Wraps a socket, in the last part that wants to. */
  wrap(socket: Socket, tunnel: LayeredTunnel, address: string): WrappedSocket | undefined {
    let wrapped: WrappedSocket | undefined
    for (const part of this.#all) wrapped ??= part.wrap?.(socket, tunnel, address)
    return wrapped
  }

  /** Returns the terms of all parts for a lane. `undefined` if a part allows no lane. */
  clausesFor(asking: LaneAsking): readonly LaneClause[] | undefined {
    const clauses: LaneClause[] = []
    for (const part of this.#all) {
      if (part.lane === undefined) {
        if (part.layer !== undefined && part.layer(ARRIVED, asking.tunnel) !== ARRIVED) return undefined
        continue
      }
      const clause = part.lane(asking)
      if (clause === 'none') return undefined
      if (clause !== undefined) clauses.push(clause)
    }
    return clauses
  }

  harvest(): void {
    for (const part of this.#all) part.harvest?.()
  }

  async load(settings: ServerSettings): Promise<void> {
    for (const part of this.#all) await part.load?.(settings)
  }

  reloaded(): void {
    for (const part of this.#all) part.reloaded?.()
  }

  async start(server: WholeServer): Promise<void> {
    for (const part of this.#all) await part.start?.(server)
  }

  /** Opens the shared tables. Returns a function that is called once they have the entries of the other servers. */
  share(open: OpenTable): () => void {
    const begins = this.#all.flatMap(part => part.share?.(open) ?? [])
    return () => {
      for (const begin of begins) begin()
    }
  }

  async listening(): Promise<void> {
    for (const part of this.#all) await part.listening?.()
  }

  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void {
    for (const part of this.#all) part.drain?.(code)
  }

  async idle(ms: number): Promise<void> {
    await Promise.all(this.#all.flatMap(part => part.idle?.(ms) ?? []))
  }

  async stop(): Promise<void> {
    for (const part of this.#all.toReversed()) await part.stop?.()
  }
}
