// The public ports of TCP and UDP tunnels. In a cluster, a port is also open here while another server has its tunnel.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { Turns } from '../../session/turns.ts'
import type { ServerContext } from '../context/server-context.ts'
import { UNHEARD } from '../contracts/raw-visit.ts'
import type { Admission } from '../limits/admission.ts'
import type { QuotaOwner } from '../limits/quotas.ts'
import type { ClaimHost } from '../tunnels/claims.ts'
import type { PortFront, Tunnel } from '../tunnels/tunnel.ts'
import type { RawVisits } from './raw-visits.ts'
import { listenTcp } from './tcp.ts'

type PortOpeners = ClaimHost['open']

export interface OpenPort {
  /** The descriptor of the socket. `undefined` if another program could not continue with it. */
  readonly descriptor?: number | undefined
  /** Takes no new visitors; open connections and flows continue. */
  drain(): void
  /** Takes no new visitors, and closes the port for good. */
  stop(): void
  /** Called when a tunnel leaves, as `PortFront.release` and `stop`, for its visitors here. With a `code`, they are cut. */
  left(tunnel: Tunnel, code: ErrorCode | undefined): void
  /** Takes a flow, as `PortFront.takeFlow`. */
  readonly takeFlow?: PortFront['takeFlow']
}

/** Whether a tunnel of this server or of another one uses the port. */
type Use = 'here' | 'elsewhere'

interface Opened {
  readonly opening: Promise<OpenPort>
  open?: OpenPort
  readonly uses: Set<Use>
}

export class PublicPorts implements PortOpeners {
  readonly #context: ServerContext
  readonly #visits: RawVisits
  readonly #admission: Admission
  readonly #udpTurns: Turns
  readonly #open = new Map<string, Opened>()

  constructor(context: ServerContext, visits: RawVisits, admission: Admission) {
    this.#context = context
    this.#visits = visits
    this.#admission = admission
    this.#udpTurns = new Turns(eventLoop, error => context.failed(error))
  }

  tcp(tunnel: Tunnel): Promise<PortFront> {
    return this.#openHere('tcp', tunnel)
  }

  udp(tunnel: Tunnel): Promise<PortFront> {
    return this.#openHere('udp', tunnel)
  }

  /** Opens the port of another server's tunnel for visitors who come here. Rejects with `PORT_TAKEN` or `NOT_ALLOWED`. */
  async openElsewhere(kind: 'tcp' | 'udp', port: number): Promise<void> {
    await this.#use(kind, port, 'elsewhere')
    this.#context.tunnels.ports[kind].take(port)
  }

  /** Closes the port: no other server has a tunnel with it any more. */
  closeElsewhere(kind: 'tcp' | 'udp', port: number): void {
    const name = `${kind}-${port}`
    this.#leave(name, 'elsewhere')
    if (this.#context.tunnels.find(name) === undefined) this.#context.tunnels.ports[kind].free(port)
  }

  get descriptors(): readonly number[] {
    return [...this.#open.values()].flatMap(({ open }) => open?.descriptor ?? [])
  }

  async #openHere(kind: 'tcp' | 'udp', tunnel: Tunnel): Promise<PortFront> {
    const {
      members: [first],
      name,
      port,
    } = tunnel
    if (first !== undefined && !this.hasRoomFor(first.holder)) throw new TunnelError('CLIENT_LIMIT')
    const open = await this.#use(kind, port, 'here')
    const leave = (code: ErrorCode | undefined) => {
      open.left(tunnel, code)
      this.#leave(name, 'here')
    }
    return {
      get descriptor() {
        return open.descriptor
      },
      drain: () => open.drain(),
      release: () => leave(undefined),
      stop: leave,
      ...(kind === 'udp' && {
        takeFlow: (socket, address, opened) => open.takeFlow?.(socket, address, opened) ?? UNHEARD,
      }),
    }
  }

  async #use(kind: 'tcp' | 'udp', port: number, use: Use): Promise<OpenPort> {
    const name = `${kind}-${port}`
    const known = this.#open.get(name)
    const opened: Opened = known ?? { opening: this.#listen(kind, port), uses: new Set() }
    if (known === undefined) this.#open.set(name, opened)
    opened.uses.add(use)
    try {
      opened.open = await opened.opening
      return opened.open
    } catch (error) {
      if (this.#open.get(name) === opened) this.#open.delete(name)
      throw error
    }
  }

  async #listen(kind: 'tcp' | 'udp', port: number): Promise<OpenPort> {
    const context = this.#context
    if (kind === 'udp') {
      const { listenUdp } = await import('./udp.ts')
      return listenUdp(port, context, this.#udpTurns)
    }
    const listening = listenTcp(port, context, this.#visits, this.#admission)
    return {
      get descriptor() {
        return listening.descriptor
      },
      drain: () => listening.stop(),
      stop: () => listening.stop(),
      left: (tunnel, code) => {
        if (code !== undefined) this.#visits.of(tunnel).cut(code)
      },
    }
  }

  #leave(name: string, use: Use): void {
    const opened = this.#open.get(name)
    if (opened?.uses.delete(use) !== true || opened.uses.size > 0) return
    this.#open.delete(name)
    if (opened.open !== undefined) opened.open.stop()
    else void opened.opening.then(open => open.stop()).catch(() => {})
  }

  /** Whether one more connection or port of a client leaves enough descriptors for others. */
  hasRoomFor(holder: QuotaOwner): boolean {
    return this.#admission.hasRoomForClient(holder.descriptorCount, this.#context.quotas.descriptorCount)
  }
}
