// Checks each visitor of a tunnel once, whatever its protocol: a request in any version of HTTP, an upgrade, a raw
// connection, a UDP flow. `Tunnel.choose` then chooses the member.

import type { Branding } from '../../branding.ts'
import type { ErrorCode } from '../../errors.ts'
import type { AskedCertificate } from '../../plugin.ts'
import type { Guarding, Judgement } from '../contracts/guarding.ts'
import type { LayeredTunnel } from '../contracts/layer.ts'
import type { Asking } from '../tunnels/pool.ts'

/** The visitor, in the form that guards get. */
export interface Visitor extends Asking {
  /**
   * Whether the visitor used HTTPS, even if it ended in front of this server. Default `false`, as for visitors without a request.
   */
  readonly isSecure?: boolean
  /** The request for a certificate, as `Admittance.asked`. */
  readonly asked?: AskedCertificate | undefined
}

export interface JudgingServer {
  readonly tunnels: { readonly guards: Guarding }
  readonly settings: { readonly branding: Branding | undefined }
  /** The combined members of all parts, as `Part.judge`. */
  readonly parts: { judge(address: string): ErrorCode | undefined }
}

const UNGUARDED: Judgement = { kind: 'pass', passes: [] }

/** Returns the verdict of the operator's bans, and of the guards of server and tunnel. `undefined` if there are none. */
export function judge(
  server: JudgingServer,
  tunnel: LayeredTunnel,
  visitor: Visitor,
): Judgement | Promise<Judgement> | undefined {
  const code = server.parts.judge(visitor.address)
  return code === undefined ? judgeByGuards(server, tunnel, visitor) : { kind: 'refusal', refusal: { code } }
}

export function judgeByGuards(
  server: JudgingServer,
  tunnel: LayeredTunnel,
  visitor: Visitor,
): Judgement | Promise<Judgement> | undefined {
  if (!tunnel.isGuarded) return undefined
  const { kind, name, owner, tokenRate: wall, guard } = tunnel
  const { address, head, isSecure = false, asked } = visitor
  const { branding } = server.settings
  const request = head && { head, ...(asked && { asked }), ...(branding && { branding }) }
  const admittance = { kind, tunnel: name, owner, address, isSecure, ...request }
  const judgement = server.tunnels.guards.judge(guard, admittance, wall)
  if (!(judgement instanceof Promise)) return judgement
  // The guard may have been replaced during the check. The new guard could never cut a visitor that only the old one admitted.
  return judgement.then(one =>
    one.kind !== 'pass' || tunnel.guard === guard ? one : (judge(server, tunnel, visitor) ?? UNGUARDED),
  )
}
