// Sends the response of a guard in place of the app's: at once, or after it has read a form.

import type { Branding } from '../../branding.ts'
import { copyOf } from '../../bytes.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import { headerLine } from '../../http/edit-head.ts'
import { errorAnswer, reasonOf, wantsHtml } from '../../http/error-answer.ts'
import { errorPage } from '../../http/pages.ts'
import type { HeaderLine, Reading, Refusal } from '../../plugin.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../contracts/upstream.ts'

/** The operations of the exchange that a response needs. */
export interface AnswerHost {
  /** The operator's name, contact and logo, for pages. */
  readonly branding: Branding | undefined
  /** Makes a refusal from an error of the form's reader, or in place of an invalid refusal. */
  failed(cause: unknown): Refusal
  answered(code: ErrorCode | undefined, reason: string | undefined): void
}

export class AnswerUpstream implements Upstream {
  readonly wire = 'streams'
  readonly inFlight = 0
  readonly #answer: Refusal | Reading
  readonly #host: AnswerHost

  constructor(answer: Refusal | Reading, host: AnswerHost) {
    this.#answer = answer
    this.#host = host
  }

  begin(visit: Visit): Exchange {
    const answer = this.#answer
    if (!('read' in answer)) return this.#say(visit, answer)
    const { body, contentLength, expectsContinue } = visit.head
    // Browsers always send the length of a form.
    if (body === 'chunked') return this.#say(visit, { code: 'BAD_REQUEST' })
    if (contentLength > answer.maxBodyBytes) return this.#say(visit, { code: 'BODY_TOO_LARGE' })
    if (expectsContinue) visit.write(CONTINUE)
    return this.#read(visit, answer)
  }

  #read(visit: Visit, { read }: Reading): Exchange {
    const pieces: Uint8Array[] = []
    let isAbandoned = false
    return {
      ...DEAD_EXCHANGE,
      body: bytes => pieces.push(copyOf(bytes)),
      bodyEnded: () => {
        // The reader may throw in the call, or reject later.
        void new Promise<Refusal>(resolve => resolve(read(Buffer.concat(pieces))))
          .catch(cause => this.#host.failed(cause))
          .then(answer => {
            if (!isAbandoned) this.#say(visit, answer, true).bodyEnded()
          })
      },
      abandoned() {
        isAbandoned = true
      },
    }
  }

  /** Responds once the request is complete. To a request with an unread body it responds at once, and the connection ends. */
  #say(visit: Visit, refusal: Refusal, isRead = visit.head.body === 'none'): Exchange {
    // After a request to switch protocols, the connection carries no other request. A misdirected request must come
    // on another connection.
    const isLast = visit.head.upgrade !== '' || refusal.code === 'CONNECTION_MISDIRECTED'
    const keepAlive = isRead && !isLast && visit.keepsAlive
    const answer = (): void => {
      const { status, bytes, code } = this.#answerOf(visit, refusal, keepAlive)
      this.#host.answered(code, refusal.reason)
      visit.answered(status)
      visit.write(bytes)
      visit.done(keepAlive)
    }
    if (isRead) return { ...DEAD_EXCHANGE, bodyEnded: answer }
    answer()
    return DEAD_EXCHANGE
  }

  #answerOf(visit: Visit, refusal: Refusal, keepAlive: boolean): WholeAnswer {
    try {
      return answerOf(visit, refusal, keepAlive, this.#host.branding)
    } catch (cause) {
      return answerOf(visit, this.#host.failed(cause), keepAlive, this.#host.branding)
    }
  }
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')

/** Returns the code for which a visitor is refused. `undefined` if the guard only shows a page or redirects. */
export function refusalCodeOf({ code, status, body }: Refusal): ErrorCode | undefined {
  if (code !== undefined) return code
  return body === undefined || (status ?? 403) >= 400 ? 'GUARD_REFUSED' : undefined
}

interface WholeAnswer {
  readonly status: number
  readonly bytes: Uint8Array
  readonly code: ErrorCode | undefined
}

/** Throws for an invalid status or header. */
function answerOf(
  { head }: Visit,
  refusal: Refusal,
  keepAlive: boolean,
  branding: Branding | undefined,
): WholeAnswer {
  const { headers = [], body } = refusal
  const given = headers.map(([name, value]) => headerLine(name, value))
  const code = refusalCodeOf(refusal)
  const status = refusal.status ?? (code === undefined ? 200 : ERRORS[code].status)
  if (!(Number.isInteger(status) && status >= 200 && status <= 599))
    throw new RangeError(`${status} is no final status`)
  const isHead = head.method === 'HEAD'
  if (body === undefined && code !== undefined) {
    const { host } = head
    const options = {
      page: wantsHtml(head) ? errorPage : undefined,
      head: isHead,
      keepAlive,
      host,
      branding,
      status,
      headers,
    }
    return { status, bytes: errorAnswer(code, options), code }
  }
  const content = typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array())
  const lines: HeaderLine[] = [
    ['content-length', String(content.length)],
    ...(code === undefined ? [] : ([['x-localtunnels-error', code]] as const)),
    ['connection', keepAlive ? 'keep-alive' : 'close'],
  ]
  const own = given.filter((_, index) => !OURS.test(headers[index]?.[0] ?? ''))
  const first = Buffer.from(`HTTP/1.1 ${status} ${reasonOf(status)}\r\n`)
  const pieces = [first, ...own, ...lines.map(([name, value]) => headerLine(name, value)), CRLF]
  return { status, bytes: Buffer.concat(isHead ? pieces : [...pieces, content]), code }
}

const CRLF = Buffer.from('\r\n')
const OURS = /^(?:content-length|connection|transfer-encoding|x-localtunnels-error)$/i
