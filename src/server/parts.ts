// The parts of one server, in the order in which requests pass their layers.

import type { Socket } from '../socket.ts'
import type { LayeredTunnel, Router } from './contracts/layer.ts'
import type {
  LaneAsking,
  LaneClause,
  MissedRequest,
  Note,
  Part,
  RawFollower,
  WholeServer,
  WrappedSocket,
} from './contracts/part.ts'
import type { Door, DoorTerms, Protocol } from './contracts/protocol.ts'
import type { Adopt } from './contracts/wire.ts'
import type { ServerSettings } from './settings.ts'
import type { AppsTerms, StreamsApps } from './upstreams/streams-context.ts'

/** Where all layers lead to. */
const ARRIVED: Router = request => request.arrived()

interface RoutedTunnel extends LayeredTunnel {
  /** `undefined`: it is to be made. */
  router: Router | undefined
}

export class Parts {
  #all: readonly Part[] = []

  use(parts: readonly Part[]): void {
    this.#all = parts
  }

  /** What requests to this tunnel pass: made once, until something changes. */
  routerFor(tunnel: RoutedTunnel): Router {
    tunnel.router ??= this.#all
      .flatMap(({ layer }) => layer ?? [])
      .reduceRight((next, layer) => layer(next, tunnel), ARRIVED)
    return tunnel.router
  }

  /** `undefined`: clients have to agree on the streams wire. */
  get adopt(): Adopt | undefined {
    return this.#all.find(({ adopt }) => adopt !== undefined)?.adopt
  }

  /** What a version of HTTP besides 1.1 is spoken by that visitors may choose now. */
  protocol(isIt: (protocol: Protocol) => boolean): Protocol | undefined {
    return this.#all.find(({ protocol }) => protocol?.isSpoken === true && isIt(protocol))?.protocol
  }

  async open(terms: DoorTerms, opened: (door: Door) => void): Promise<void> {
    for (const part of this.#all) {
      const door = await part.open?.(terms)
      if (door !== undefined) opened(door)
    }
  }

  /** `undefined`: no app of HTTP/2 can be reached. */
  get appsOf(): ((terms: AppsTerms) => StreamsApps) | undefined {
    return this.#all.find(({ appsOf }) => appsOf !== undefined)?.appsOf
  }

  missed(request: MissedRequest): void {
    for (const part of this.#all) part.missed?.(request)
  }

  noted(note: Note): void {
    for (const part of this.#all) part.noted?.(note)
  }

  followRaw(tunnel: LayeredTunnel, address: string): readonly RawFollower[] {
    return this.#all.flatMap(part => part.followRaw?.(tunnel, address) ?? [])
  }

  /** By the last part that has something to put in front of it. */
  wrap(socket: Socket, tunnel: LayeredTunnel, address: string): WrappedSocket | undefined {
    let wrapped: WrappedSocket | undefined
    for (const part of this.#all) wrapped ??= part.wrap?.(socket, tunnel, address)
    return wrapped
  }

  /** What all parts want of a lane; `undefined`: there is to be none. */
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

  drain(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void {
    for (const part of this.#all) part.drain?.(code)
  }

  async stop(): Promise<void> {
    for (const part of this.#all.toReversed()) await part.stop?.()
  }
}
