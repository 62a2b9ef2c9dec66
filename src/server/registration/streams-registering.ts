// Registrations of one client on the streams wire, from the request to the grant or refusal. Checking a token, making
// a guard and opening a port may each take a while.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Register } from '../../wire/control.ts'
import type { OwnGuard } from '../contracts/guarding.ts'
import type { Verdict } from '../limits/token-throttle.ts'
import type { Rule } from '../settings/policy.ts'
import type { Claiming } from '../tunnels/claims.ts'
import type { Member } from '../tunnels/member.ts'
import type { StreamsHost, StreamsTunnels, TunnelsOwner } from './streams-tunnels.ts'

export class StreamsRegistering {
  readonly #host: StreamsHost
  readonly #owner: TunnelsOwner
  readonly #tunnels: StreamsTunnels
  /** The number of registrations whose port is being opened, whose guard is being made, or whose token waits. */
  count = 0
  /** The functions that end the wait of registrations whose token is not checked yet. */
  readonly #waits = new Map<Register, () => void>()
  /** The number of registrations that were refused because of a token of their own. */
  #refusedTokens = 0

  constructor(host: StreamsHost, owner: TunnelsOwner, tunnels: StreamsTunnels) {
    this.#host = host
    this.#owner = owner
    this.#tunnels = tunnels
  }

  close(): void {
    for (const stop of this.#waits.values()) stop()
    this.#waits.clear()
  }

  register(message: Register): void {
    const { token } = message
    const { rule, remoteAddress } = this.#owner
    if (token === undefined) return this.#registerBy(rule, message)
    if (this.#isFull) return this.#answer(message, 'CLIENT_LIMIT', rule)
    const { tokenThrottle: tokenGate } = this.#host
    const judged = (verdict: Verdict): void => this.#judged(message, verdict)
    if (tokenGate.isQuick(token, remoteAddress)) return judged(tokenGate.judge(token, remoteAddress))
    const wait = tokenGate.judgeLater(token, remoteAddress, verdict => {
      this.#waits.delete(message)
      this.count--
      try {
        judged(verdict)
      } catch (cause) {
        this.#owner.broke(cause)
      }
    })
    if (typeof wait === 'string') return judged(wait)
    this.count++
    this.#waits.set(message, wait)
  }

  #judged(message: Register, verdict: Verdict): void {
    if (typeof verdict !== 'string') return this.#registerBy(verdict, message)
    this.#answer(message, verdict, this.#owner.rule)
    if (verdict === 'TOKEN_REFUSED' && ++this.#refusedTokens >= this.#host.server.limits.maxTokenGuesses)
      this.#owner.close('TOKEN_REFUSED')
  }

  #registerBy(rule: Rule, message: Register): void {
    const { guard } = message
    if (guard === undefined) return this.#registerWith(rule, message, undefined)
    if (this.#isFull) return this.#answer(message, 'CLIENT_LIMIT', rule)
    this.count++
    void this.#tunnels.makeGuard(guard, message).then(made => {
      this.count--
      if (this.#owner.isClosed)
        return made instanceof TunnelError ? undefined : this.#host.server.tunnels.guards.close(made)
      if (made instanceof TunnelError) return this.#refuse(message, made.code, made.message, rule)
      // Making the guard took a while, in which the server may have reloaded.
      const ruleNow = rule.in(this.#host.server.settings.policy)
      if (ruleNow === undefined) return this.#answer(message, 'TOKEN_REFUSED', rule)
      this.#registerWith(ruleNow, message, made)
    })
  }

  #registerWith(rule: Rule, message: Register, guard: OwnGuard | undefined): void {
    const holder = this.#host.server.quotas.of(rule, this.#owner.remoteAddress)
    const claimed = this.#claim(message, { rule, holder, guard })
    if (!(claimed instanceof Promise)) return this.#answer(message, claimed, rule)
    this.count++
    const answered = claimed.then(member => {
      this.count--
      // The client may have left, or the server may have reloaded, while the port was opened.
      if (this.#owner.isClosed) return typeof member === 'string' ? undefined : member.lapse()
      const ruleNow = rule.in(this.#host.server.settings.policy)
      if (typeof member === 'string') return this.#answer(message, member, rule)
      const refusal = ruleNow === undefined ? 'TOKEN_REFUSED' : this.#host.refusalOf(member.tunnel, ruleNow)
      if (refusal !== undefined) member.remove(refusal)
      this.#answer(message, refusal ?? member, ruleNow ?? rule)
    })
    answered.catch((cause: unknown) => this.#owner.broke(cause))
  }

  #claim(message: Register, claiming: Claiming): Member | ErrorCode | Promise<Member | ErrorCode> {
    if (claiming.holder.isRefusedTooOften(performance.now())) return 'TOO_MANY_REFUSALS'
    return this.#isFull ? 'CLIENT_LIMIT' : this.#host.claim(message, claiming)
  }

  get #isFull(): boolean {
    return this.#tunnels.size + this.count >= this.#host.server.limits.maxTunnels
  }

  #answer(message: Register, member: Member | ErrorCode, rule: Rule): void {
    if (typeof member !== 'string') return this.#tunnels.grant(message, member, rule)
    const holder = this.#host.server.quotas.of(rule, this.#owner.remoteAddress)
    const text =
      member === 'CLIENT_LIMIT' && this.#isFull
        ? new TunnelError(
            member,
            `This client has ${this.#host.server.limits.maxTunnels} tunnels, as many as the server allows (maxTunnels).`,
          ).message
        : this.#host.refusalText(member, message, { rule, holder })
    this.#refuse(message, member, text, rule)
  }

  #refuse(message: Register, code: ErrorCode, text: string, rule: Rule): void {
    this.#host.server.quotas.of(rule, this.#owner.remoteAddress).refused(performance.now())
    this.#host.refused(this.#owner, message, code)
    this.#owner.send({ type: 'refused', ref: message.ref, code, message: text })
  }
}
