// The port for plain HTTP: responds to checks of a certificate authority, and redirects every other request to HTTPS.

import type { Branding } from '../../branding.ts'
import { HTTP_CHALLENGE_PATH } from '../../certificates.ts'
import type { ServerContext } from '../context/server-context.ts'
import { type Arrival, refusal } from '../contracts/front.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../contracts/upstream.ts'
import { type RequestHost, RoutedRequest, type VisitorRouter } from '../routing/routed-request.ts'

/** A token in base64url (RFC 8555 section 8.1). */
const TOKEN = /^[\w-]{1,512}$/

export class Redirects implements VisitorRouter, Upstream {
  readonly wire = 'streams'
  readonly inFlight = 0
  readonly #context: ServerContext
  readonly #books: RequestHost
  readonly #httpsPort: () => number

  constructor(context: ServerContext, books: RequestHost, httpsPort: () => number) {
    this.#context = context
    this.#books = books
    this.#httpsPort = httpsPort
  }

  get branding(): Branding | undefined {
    return this.#context.settings.branding
  }

  accept(arrival: Arrival): RoutedRequest {
    const { head } = arrival
    const request = new RoutedRequest(arrival, this.#books)
    request.route = this.#books.routeSafely(() => {
      const isOurs = this.#context.destinationOf(head.host).kind !== 'unknown' && head.target.startsWith('/')
      // A redirect to any other host would be an open redirect. A target in absolute form names its own host.
      return isOurs || this.#proofFor(head.target) !== undefined
        ? { kind: 'upstream', upstream: this }
        : refusal('HOST_UNKNOWN')
    })
    return request
  }

  failed(cause: unknown): void {
    this.#books.failed(cause)
  }

  begin(visit: Visit): Exchange {
    const { target, host, method, body } = visit.head
    const proof = method === 'GET' ? this.#proofFor(target) : undefined
    const send = () => {
      if (proof === undefined) this.#redirect(visit, `https://${host}${this.#shownPort}${target}`)
      else answer(visit, 200, '', proof)
    }
    if (body === 'none') return { ...DEAD_EXCHANGE, bodyEnded: send }
    // The redirect does not wait for the body.
    send()
    return DEAD_EXCHANGE
  }

  #proofFor(target: string): string | undefined {
    if (!target.startsWith(HTTP_CHALLENGE_PATH)) return undefined
    const token = target.slice(HTTP_CHALLENGE_PATH.length)
    return TOKEN.test(token) ? this.#context.settings.challenges?.httpAnswer(token) : undefined
  }

  /** Redirects with 308, which keeps method and body (RFC 9110 section 15.4.9). */
  #redirect(visit: Visit, url: string): void {
    answer(visit, 308, `Location: ${url}\r\n`, `This server speaks https: ${url}\n`)
  }

  get #shownPort(): string {
    const { publicUrl } = this.#context.settings
    const port = publicUrl === undefined ? this.#httpsPort() : Number(publicUrl.port || 443)
    return port === 443 ? '' : `:${port}`
  }
}

function answer(visit: Visit, status: 200 | 308, lines: string, body: string): void {
  const isKept = visit.keepsAlive && visit.head.body === 'none'
  const head = `HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Permanent Redirect'}\r\n${lines}Content-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\n${isKept ? '' : 'Connection: close\r\n'}\r\n`
  visit.answered(status)
  visit.write(Buffer.from(visit.head.method === 'HEAD' ? head : head + body))
  visit.done(isKept)
}
