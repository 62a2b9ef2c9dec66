// Contract: what the guards of a server and of its tunnels do for it. Implementation: parts/guards/. Without it: no-guards.ts.

import type { TunnelError } from '../../errors.ts'
import type { Admittance, Guard, GuardedTunnel, Pass, Reading, Refusal, UsedMarks } from '../../plugin.ts'

export interface OwnGuard {
  readonly guard: Guard
  readonly definition: string
  /** Whether the guard refuses any visitor, as `isRefusing`. */
  readonly isRefusing: boolean
}

/** A request to ask visitors for certificates of these authorities. */
export interface Asking {
  readonly clientCa: string
}

/** The joint decision of all guards. */
export type Judgement =
  | { readonly kind: 'pass'; readonly passes: readonly Pass[] }
  | { readonly kind: 'refusal'; readonly refusal: Refusal }
  | { readonly kind: 'reading'; readonly reading: Reading }

export interface Guarding {
  /** The marks of other servers. `undefined` if there are no others. */
  marks: UsedMarks | undefined
  asksCertificates: boolean
  isAsked(own: OwnGuard | undefined, tunnel: string): boolean
  /** The first guard that has visitors of this tunnel asked for certificates; `undefined`: they are not asked. */
  askingFor(own: OwnGuard | undefined, tunnel: string): Asking | undefined
  /** Asks all guards. Never throws or rejects. A promise only where a guard returned one. */
  judge(own: OwnGuard | undefined, visitor: Admittance, tokenRate?: Guard): Judgement | Promise<Judgement>
  /** The guard that a client asks for; the error says why it cannot have it. */
  make(definition: object, tunnel: GuardedTunnel): Promise<OwnGuard | TunnelError>
  /** Closes a guard that is no longer used; `next` replaces it. */
  close(own: OwnGuard, next?: OwnGuard): void
  /** Reports that a verdict cannot be carried out, or that the reader of a form failed. */
  fail(cause: unknown): Refusal
}
