// The errors of orders that must wait, which is not a failure.

import { ERRORS, type ErrorCode, TunnelError } from '../errors.ts'
import type { StoredRefusal } from '../store.ts'

const AGAIN = ' It is tried again at '

/** An error after which the next pause is not longer. */
export class Delayed extends TunnelError {
  readonly untilMs: number

  /** Makes the error. `why` may be the message of another error: the next step and the time are only given once. */
  constructor(why: string, untilMs: number, code: ErrorCode = 'CERTIFICATE_DELAYED') {
    const reason = until(AGAIN, until(` ${ERRORS[code].action}`, why))
    super(code, `${reason}${AGAIN}${new Date(untilMs).toISOString()}.`)
    this.untilMs = untilMs
  }
}

/** The error if the tunnel left while its order waited. The name's next visitor orders a certificate again. */
export class Gone extends TunnelError {
  constructor(name: string) {
    const action = 'Its certificate is ordered when a visitor comes to a tunnel of this name.'
    super('CERTIFICATE_DELAYED', `No tunnel has the name ${name} any more.`, { action })
  }
}

/**
 * The error if an earlier order failed, in this process or another, and its pause is not over. The failure was already reported.
 */
export class Standing extends Delayed {
  readonly refusal: StoredRefusal

  constructor(refusal: StoredRefusal) {
    super(refusal.message, refusal.untilMs)
    this.refusal = refusal
  }
}

/** Returns the part of `text` before `mark`, or the whole without one. */
function until(mark: string, text: string): string {
  const at = text.indexOf(mark)
  return at === -1 ? text : text.slice(0, at)
}
