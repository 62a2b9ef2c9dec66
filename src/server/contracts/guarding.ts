// Contract between the server and the guards of its tunnels. Implementation: parts/guards/. Without that part: no-guards.ts.

import type { TunnelError } from '../../errors.ts'
import type { Admittance, Guard, GuardedTunnel, Pass, Reading, Refusal, UsedMarks } from '../../plugin.ts'

export interface OwnGuard {
  readonly guard: Guard
  readonly definition: string
  /** Whether the guard can refuse a visitor, as in the function `isRefusing`. */
  readonly isRefusing: boolean
}

/** The certificate authorities whose certificates visitors are asked for. */
export interface Asking {
  readonly clientCa: string
}

/** The combined verdict of all guards. */
export type Judgement =
  | { readonly kind: 'pass'; readonly passes: readonly Pass[] }
  | { readonly kind: 'refusal'; readonly refusal: Refusal }
  | { readonly kind: 'reading'; readonly reading: Reading }

export interface Guarding {
  /** The used links and passwords that all servers of the cluster share. `undefined` if the server is alone. */
  marks: UsedMarks | undefined
  asksCertificates: boolean
  isAsked(own: OwnGuard | undefined, tunnel: string): boolean
  /** Returns the first guard that asks visitors of this tunnel for certificates. `undefined`: none does. */
  askingFor(own: OwnGuard | undefined, tunnel: string): Asking | undefined
  /** Asks all guards. Never throws or rejects. Returns a promise only if a guard did. */
  judge(own: OwnGuard | undefined, visitor: Admittance, tokenRate?: Guard): Judgement | Promise<Judgement>
  /** Makes the guard that a client asks for. The error says why it is refused. */
  make(definition: object, tunnel: GuardedTunnel): Promise<OwnGuard | TunnelError>
  /** Closes a guard after its last use. `next`: the guard that replaces it. `undefined`: none does. */
  close(own: OwnGuard, next?: OwnGuard): void
  /** Reports an error: a verdict that cannot be applied, or the reader of a form that threw. */
  fail(cause: unknown): Refusal
}
