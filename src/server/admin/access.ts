// Who may use the admin listener: clients that show its token. A browser's page of another site is refused before.

import { createHash, timingSafeEqual } from 'node:crypto'
import { TunnelError } from '../../errors.ts'

/** Throws `ADMIN_INVALID` where Host and path are no URL together: a caller without a token can send that. */
export function urlOf(request: Request): URL {
  const url = URL.parse(request.url)
  if (url !== null) return url
  throw new TunnelError('ADMIN_INVALID', 'The Host, or the path, is none.')
}

/** Why the request gets no answer; `undefined`: it may pass. */
export function refusalOf(request: Request, token: string): TunnelError | undefined {
  const { headers, method } = request
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  const isForeign = site !== null && site !== 'same-origin' && site !== 'none'
  if (isForeign || (origin !== null && origin !== urlOf(request).origin))
    return new TunnelError('ADMIN_REFUSED', 'Pages of other sites may not use the admin API.')
  if (!isToken(headers.get('authorization'), token)) return new TunnelError('ADMIN_REFUSED')
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (method === 'POST' && (type !== undefined || request.body !== null) && type !== 'application/json')
    return new TunnelError('ADMIN_INVALID', 'What is written must be application/json.')
  return undefined
}

function isToken(authorization: string | null, token: string): boolean {
  const given = /^bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1]
  // Digests have one length: neither the length nor the place of a difference shows in the time.
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return given !== undefined && timingSafeEqual(digest(given), digest(token))
}

/** On every answer. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}
