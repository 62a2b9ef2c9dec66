// Contract: what the guards of a server and of its tunnels do for it. Implementation: parts/guards/. Without it: no-guards.ts.

import type { TunnelError } from '../../errors.ts'
import type { Admittance, Guard, GuardedTunnel, Pass, Reading, Refusal, UsedMarks } from '../../plugin.ts'

/** A tunnel's own guard, and what its client asked for. */
export interface OwnGuard {
  readonly guard: Guard
  /** Equal for equal definitions. */
  readonly definition: string
  /** As `isRefusing`: else all visitors pass. */
  readonly isRefusing: boolean
}

/** Has visitors asked for certificates of these authorities. */
export interface Asking {
  readonly clientCa: string
}

/** What all guards together say. */
export type Judgement =
  | { readonly kind: 'pass'; readonly passes: readonly Pass[] }
  | { readonly kind: 'refusal'; readonly refusal: Refusal }
  | { readonly kind: 'reading'; readonly reading: Reading }

export interface Guarding {
  /** What other servers know to be used, too; `undefined`: there are none. */
  marks: UsedMarks | undefined
  /** Whether handshakes of visitors can ask for certificates. */
  asksCertificates: boolean
  /** Whether a visitor of a tunnel with this guard is asked about at all. */
  isAsked(own: OwnGuard | undefined, tunnel: string): boolean
  /** The first guard that has visitors of this tunnel asked for certificates; `undefined`: they are not asked. */
  askingFor(own: OwnGuard | undefined, tunnel: string): Asking | undefined
  /** Never throws or rejects. A promise only where a guard returned one. */
  judge(own: OwnGuard | undefined, visitor: Admittance, wall?: Guard): Judgement | Promise<Judgement>
  /** The guard that a client asks for; the error says why it cannot have it. */
  make(definition: object, tunnel: GuardedTunnel): Promise<OwnGuard | TunnelError>
  /** It is not used any more; `next` is in its place. */
  close(own: OwnGuard, next?: OwnGuard): void
  /** What a verdict said cannot be done, or the reader of a form failed. */
  fail(cause: unknown): Refusal
}
