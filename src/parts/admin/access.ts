// Access to the admin listener: clients need its token, and requests by pages of other sites are refused before the
// token is checked.

import { createHash, timingSafeEqual } from 'node:crypto'
import { deferred } from '../../deferred.ts'
import { TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { TokenThrottle, type Verdict } from '../../server/limits/token-throttle.ts'
import { pathBelow } from '../../server/registration/control.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import { ANYTHING } from '../../server/settings/policy.ts'

/**
 * Returns the URL without the base path. Throws `ADMIN_INVALID` if Host and path do not form a valid URL, which a
 * caller without a token can cause.
 */
export function urlOf(request: Request, basePath = ''): URL {
  const url = URL.parse(request.url)
  if (url !== null && basePath !== '') url.pathname = pathBelow(`${basePath}/admin`, url.pathname)
  if (url !== null) return url
  throw new TunnelError('ADMIN_INVALID', 'The Host, or the path, is none.')
}

/** The operations of the process that the listener needs. */
export interface AccessHost {
  readonly token: string
  /** The base path of the server's settings. Default none. */
  readonly basePath?: string
  limits(): Bounds
  /** Called when a wrong token came from this address, or too many requests wait. */
  refused(address: string, code: 'ADMIN_REFUSED' | 'TOO_MANY_REFUSALS'): void
  failed(cause: unknown): void
}

export class AdminAccess {
  readonly #host: AccessHost
  /** Delays addresses with wrong tokens, in the same way as for clients' tokens. */
  readonly #throttle: TokenThrottle

  constructor(host: AccessHost) {
    this.#host = host
    const digest = digestOf(host.token)
    this.#throttle = new TokenThrottle({
      limits: () => host.limits(),
      scheduler: eventLoop,
      // Digests have one length, so the time reveals neither the length nor the place of a difference.
      ruleOf: given =>
        given !== undefined && timingSafeEqual(digestOf(given), digest) ? ANYTHING : undefined,
      failed: error => host.failed(error),
    })
  }

  /** Returns why a request is refused. `undefined` if it is accepted. `address`: that of the sender; empty on a Unix socket. */
  async refusalOf(request: Request, address: string): Promise<TunnelError | undefined> {
    const { headers, method } = request
    const site = headers.get('sec-fetch-site')
    const origin = headers.get('origin')
    // A proxy in front may end TLS and change Host, so browsers with Sec-Fetch-Site are believed instead.
    const isForeign =
      site === null
        ? origin !== null && URL.parse(origin)?.host !== urlOf(request).host
        : site !== 'same-origin' && site !== 'none'
    if (isForeign) return new TunnelError('ADMIN_REFUSED', 'Pages of other sites may not use the admin API.')
    const token = /^bearer ([\x21-\x7e]+)$/i.exec(headers.get('authorization') ?? '')?.[1]
    // A request without a token is not a guess.
    if (token === undefined)
      return new TunnelError('ADMIN_REFUSED', 'The admin listener wants a token, and got none.')
    const verdict = await this.#judge(token, address)
    if (verdict === 'TOKEN_REFUSED' || verdict === 'TOO_MANY_REFUSALS') {
      const code = verdict === 'TOKEN_REFUSED' ? 'ADMIN_REFUSED' : verdict
      this.#host.refused(address, code)
      return new TunnelError(code)
    }
    if (verdict !== ANYTHING) return new TunnelError('INTERNAL')
    const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    if (method === 'POST' && (type !== undefined || request.body !== null) && type !== 'application/json')
      return new TunnelError('ADMIN_INVALID', 'What is written must be application/json.')
    return undefined
  }

  urlOf(request: Request): URL {
    return urlOf(request, this.#host.basePath)
  }

  /** Reports an internal error. */
  failed(cause: unknown): void {
    this.#host.failed(cause)
  }

  #judge(token: string, address: string): Verdict | Promise<Verdict> {
    if (this.#throttle.isQuick(token, address)) return this.#throttle.judge(token, address)
    const { promise, resolve } = deferred<Verdict>()
    const wait = this.#throttle.judgeLater(token, address, resolve)
    return typeof wait === 'string' ? wait : promise
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}
