// Orders that have to wait, which is not a failure.

import { ERRORS, type ErrorCode, TunnelError } from '../errors.ts'
import type { StoredRefusal } from '../store.ts'

const AGAIN = ' It is tried again at '

/** An error that does not make the next wait longer. */
export class Delayed extends TunnelError {
  readonly untilMs: number

  /** Makes the error. `why` may be the message of another error: what to do, and until when, is said only once. */
  constructor(why: string, untilMs: number, code: ErrorCode = 'CERTIFICATE_DELAYED') {
    const reason = until(AGAIN, until(` ${ERRORS[code].action}`, why))
    super(code, `${reason}${AGAIN}${new Date(untilMs).toISOString()}.`)
    this.untilMs = untilMs
  }
}

/** The tunnel left while its order waited. This is not a failure: the next visitor of the name asks for its certificate. */
export class Gone extends TunnelError {
  constructor(name: string) {
    const action = 'Its certificate is ordered when a visitor comes to a tunnel of this name.'
    super('CERTIFICATE_DELAYED', `No tunnel has the name ${name} any more.`, { action })
  }
}

/** An order failed before, of this process or another, and the time to wait is not over. It was reported then. */
export class Standing extends Delayed {
  readonly refusal: StoredRefusal

  constructor(refusal: StoredRefusal) {
    super(refusal.message, refusal.untilMs)
    this.refusal = refusal
  }
}

/** Returns the `text` before `mark`, or all of it without one. */
function until(mark: string, text: string): string {
  const at = text.indexOf(mark)
  return at === -1 ? text : text.slice(0, at)
}
