// Which member of a tunnel takes a visitor. Every visitor passes here once, whatever it speaks: a request of any version of
// HTTP, an upgrade, a raw connection, a UDP flow. First the guards are asked, then a member is chosen.

import type { Branding } from '../../branding.ts'
import type { ErrorCode } from '../../errors.ts'
import type { AskedCertificate, Refusal } from '../../plugin.ts'
import type { Holding } from '../contracts/front.ts'
import type { Guarding, Judgement } from '../contracts/guarding.ts'
import type { LayeredTunnel } from '../contracts/layer.ts'
import type { Member } from '../tunnels/member.ts'
import type { Asking } from '../tunnels/pool.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/** The member that takes the visitor, why none does, or a wait for one. */
export type Chosen = Member | ErrorCode | Holding<Member | ErrorCode>

/** The visitor, as guards see it. */
export interface Visitor extends Asking {
  /** Whether it came with https, also if that ends before this server. Default `false`: no request. */
  readonly isSecure?: boolean
  /** The certificate request, as `Admittance.asked`. */
  readonly asked?: AskedCertificate | undefined
}

/** The operations of the server that it needs. */
export interface GateHost {
  readonly tunnels: { readonly guards: Guarding }
  readonly settings: { readonly branding: Branding | undefined }
  readonly isRunning: boolean
  /** All of them: as `Part.judge`. */
  readonly parts: { judge(address: string): ErrorCode | undefined }
}

const UNGUARDED: Judgement = { kind: 'pass', passes: [] }

export class VisitorGate {
  readonly #host: GateHost

  constructor(host: GateHost) {
    this.#host = host
  }

  /**
   * Asks the operator's rules and the guards of the server and of the tunnel about a visitor. `undefined`: there is none to
   * ask.
   */
  judge(tunnel: LayeredTunnel, visitor: Visitor): Judgement | Promise<Judgement> | undefined {
    const code = this.#host.parts.judge(visitor.address)
    return code === undefined ? this.judgeByGuards(tunnel, visitor) : { kind: 'refusal', refusal: { code } }
  }

  /** The guards alone. */
  judgeByGuards(tunnel: LayeredTunnel, visitor: Visitor): Judgement | Promise<Judgement> | undefined {
    if (!tunnel.isGuarded) return undefined
    const { kind, name, owner, wall } = tunnel
    const { address, head, isSecure = false, asked } = visitor
    const { branding } = this.#host.settings
    const request = head && { head, ...(asked && { asked }), ...(branding && { branding }) }
    const admittance = { kind, tunnel: name, owner, address, isSecure, ...request }
    const { guard } = tunnel
    const judgement = this.#guards.judge(guard, admittance, wall)
    if (!(judgement instanceof Promise)) return judgement
    // By then another guard may decide: what the one before let in, this one might not, and would never cut.
    return judgement.then(one =>
      one.kind !== 'pass' || tunnel.guard === guard ? one : (this.judge(tunnel, visitor) ?? UNGUARDED),
    )
  }

  /** Reports the failure of a guard's further work. */
  failed(cause: unknown): Refusal {
    return this.#guards.fail(cause)
  }

  get #guards(): Guarding {
    return this.#host.tunnels.guards
  }

  /** Chooses a member. `tried`: members that had the visitor's request already, without success. */
  choose(tunnel: Tunnel, asking: Asking, tried?: ReadonlySet<Member>): Chosen {
    const chosen = tunnel.choose(asking, tried)
    if (chosen === 'ORIGIN_UNHEALTHY' || chosen?.upstream !== undefined) return chosen
    // A server that stops grants no tunnel: a visitor that waited for the client would wait without success.
    if (!this.#host.isRunning) return 'SERVER_DRAINING'
    return { kind: 'holding', hold: held => tunnel.hold(held, asking.address) }
  }
}
