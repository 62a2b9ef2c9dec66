// The pages for visitors while an app or its client is away, as a part of a server. Clients send them with their registration.

import type { ErrorCode } from '../../errors.ts'
import { type ErrorAnswerOptions, wantsHtml } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Install } from '../../server/contracts/part.ts'
import { type AwayPage, awayPageOf, MAX_PAGE_BYTES } from './away-page.ts'
import { KeptPages } from './kept-pages.ts'

/** The codes for an app or client that is away. A fault in a response is for the app's owner. */
const AWAY: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TUNNEL_NOT_FOUND',
  'CLIENT_GONE',
  'CLIENT_RECONNECTING',
  'CARRIER_LOST',
  'SERVER_STARTING',
  'ORIGIN_REFUSED',
  'ORIGIN_UNREACHABLE',
  'ORIGIN_UNHEALTHY',
])

/**
 * The policy of these pages: nothing runs or loads, because the name may belong to another client tomorrow, with its
 * visitors and their cookies.
 */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-top-navigation-by-user-activation allow-popups"

export const installPages: Install = server => {
  const pages = new KeptPages(() => performance.now())
  return {
    name: 'pages',
    wishes: {
      away: wish =>
        awayPageOf(wish) === undefined
          ? `away must be HTML, text or JSON of at most ${MAX_PAGE_BYTES} bytes, with a status of 200 or 400 to 599.`
          : undefined,
    },
    layer(next, tunnel) {
      if (pages.of(tunnel.name) === undefined) return next
      return request => {
        request.useErrorPage(code => answerFor(code, pages.of(tunnel.name), request.head))
        return next(request)
      }
    },
    nameLayer: next => named => {
      if (pages.missed(named.name))
        named.request.useErrorPage(code => answerFor(code, pages.of(named.name), named.request.head))
      return next(named)
    },
    lane: () => undefined,
    registered(tunnel, { rule, address, wishes: { away } }) {
      const { name, owner } = tunnel
      const page = awayPageOf(away)
      const isNews = (page === undefined) !== (pages.of(name) === undefined)
      const mayStay = (): boolean => {
        const { policy, reservedNames } = server.settings
        const refusal = server.isBlocked(name) || server.parts.judge(address) || reservedNames.has(name)
        const now = rule.in(policy)
        return !refusal && now !== undefined && now.refusal('http', name) === undefined
      }
      if (page !== undefined) pages.keep(name, owner, page, mayStay)
      else pages.forget(name)
      if (isNews) tunnel.routesChanged()
    },
    closed: name => pages.forget(name),
    claimedElsewhere: name => pages.forget(name),
  }
}

function answerFor(
  code: ErrorCode,
  page: AwayPage | undefined,
  head: RequestHead,
): Partial<ErrorAnswerOptions> | undefined {
  if (page === undefined || !AWAY.has(code)) return undefined
  const { type, text, status } = page
  // Programs get the code.
  if (type === 'text/html' && !wantsHtml(head)) return undefined
  return {
    page: () => ({ html: text, policy: POLICY }),
    headers: [['content-type', `${type}; charset=utf-8`]],
    ...(status !== undefined && { status }),
  }
}
