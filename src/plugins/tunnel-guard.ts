// The guard of one tunnel: all access rules must let a visitor pass, and one of the sign-in methods of the path is enough.

import { ERRORS } from '../errors.ts'
import { GUARD_PATH } from '../guard.ts'
import type { PathRules } from '../paths/path-rules.ts'
import type {
  Admittance,
  Allotment,
  Guard,
  HeaderLine,
  Middleware,
  Pass,
  Reading,
  Refusal,
  Verdict,
} from '../plugin.ts'
import { formPage, redirected, refusedAs, refusedWithJson } from './answers.ts'
import { ClientCertificate } from './certificate.ts'
import type { Permission } from './kept.ts'
import { Links } from './links.ts'
import { begunLoginOf, isCallback, Login, offeredLoginOf } from './login.ts'
import { Password } from './password.ts'
import { Rate } from './rate.ts'
import { COOKIES, covers, type Session, type SessionStore } from './sessions.ts'
import {
  type Denied,
  type Entry,
  isNavigation,
  localPath,
  type Recognised,
  type Request,
  type Rule,
  type Sessions,
  type SessionTerms,
  userText,
  type Way,
} from './way.ts'

/**
 * The header with the visitor's identity, if the sign-in method has one. The visitor's own header of this name never reaches
 * the app.
 */
export const USER_HEADER = 'x-localtunnels-user'

/** The headers with a path that some apps read in place of the path whose rule was checked. */
const OTHER_PATHS = ['x-original-url', 'x-rewrite-url']
/** The headers in which some apps read the method: with one, a preflight could be any request. */
const OTHER_METHODS = ['x-http-method-override', 'x-http-method', 'x-method-override']

export interface TunnelGuardParts {
  readonly walls: readonly Guard[]
  readonly paths: PathRules<Rule>
  readonly book: SessionStore
  /** The key that signs logins in progress. */
  readonly key: string
  /** Whether preflights pass. */
  readonly isCors: boolean
  readonly requestHeaders: readonly HeaderLine[]
  readonly responseHeaders: readonly HeaderLine[]
  /** The time from which no visitor passes, in milliseconds since 1970. `undefined` for never. */
  readonly endsAt: number | undefined
  /** The authorities of client certificates, as `Guard.clientCa`. */
  readonly clientCa: string | undefined
}

export class TunnelGuard implements Guard, Sessions {
  readonly name = 'tunnel'
  readonly clientCa?: string
  readonly #parts: TunnelGuardParts
  readonly #hasWays: boolean
  /** Whether heads stay unchanged: with access rules only, there is nothing that a visitor could pretend to have. */
  readonly #leavesHeads: boolean

  constructor(parts: TunnelGuardParts) {
    this.#parts = parts
    if (parts.clientCa !== undefined) this.clientCa = parts.clientCa
    this.#hasWays = parts.paths.all.some(({ ways }) => ways.length > 0)
    const { requestHeaders, responseHeaders } = parts
    this.#leavesHeads = !this.#hasWays && requestHeaders.length === 0 && responseHeaders.length === 0
  }

  admit(visitor: Admittance): Verdict | Promise<Verdict> {
    const verdict = this.#judge(visitor)
    const origin = this.#parts.isCors ? visitor.head?.header('origin') : undefined
    if (origin === undefined) return verdict
    return verdict instanceof Promise
      ? verdict.then(one => readableBy(origin, one))
      : readableBy(origin, verdict)
  }

  #judge(visitor: Admittance): Verdict | Promise<Verdict> {
    for (const wall of this.#parts.walls) {
      const refusal = wall.admit(visitor)
      if (refusal !== undefined) return refusal
    }
    // Raw tunnels only have access rules, because their bytes have no credentials.
    if (visitor.head === undefined) return this.#passUntouched(visitor)
    return this.#admitRequest({ ...visitor, head: visitor.head })
  }

  /** The head of an admitted visitor is not read if there are only access rules. */
  allot(visitor: Admittance): Allotment | 'all' | undefined {
    const { walls } = this.#parts
    if (!this.#leavesHeads) return undefined
    let all: Allotment | 'all' = 'all'
    for (const wall of walls) {
      const allotted = wall.allot?.(visitor)
      // A guard has only one rate.
      if (allotted === undefined || (allotted !== 'all' && all !== 'all')) return undefined
      if (allotted !== 'all') all = allotted
    }
    return all
  }

  /** Closes the guard. Admitted visits stay if the next guard of the tunnel would admit them; all others are cut. */
  close(next?: Guard): void {
    const { book } = this.#parts
    const heir = next instanceof TunnelGuard ? next : undefined
    if (heir === undefined) return book.kept.handTo(undefined, () => undefined)
    const { book: itsBook } = heir.#parts
    itsBook.follow(book)
    book.kept.handTo(itsBook.kept, permission => heir.#renewed(permission, book))
  }

  begin(
    visitor: Request,
    way: Way,
    to: string,
    terms: SessionTerms,
    headers: readonly HeaderLine[] = [],
  ): Refusal {
    return redirected(to, [['set-cookie', this.#parts.book.begin(visitor, way, terms)], ...headers])
  }

  #admitRequest(visitor: Request): Verdict | Promise<Verdict> {
    const { head } = visitor
    if (this.#hasWays && head.path.startsWith(GUARD_PATH))
      return this.#answer(visitor, head.path.slice(GUARD_PATH.length))
    const rule = this.#parts.paths.ruleOf(head.path)
    if (rule === undefined) return refusedWithJson('BAD_REQUEST')
    if (rule.ways.length === 0) return this.#passOf(visitor, {})
    if (this.#parts.isCors && isPreflight(visitor)) {
      const pass = this.#passOf(visitor, { used: OTHER_METHODS })
      return { ...pass, middleware: PREFLIGHTS }
    }
    const session = this.#parts.book.of(visitor).find(one => isFor(one, rule, head.path))
    if (session !== undefined)
      return this.#passOf(
        visitor,
        { ...(session.user !== undefined && { user: session.user }), endsAt: session.endsAt },
        { kind: session.way, mark: session.mark },
        session,
      )
    return this.#recognise(visitor, rule)
  }

  #recognise(visitor: Request, rule: Rule): Verdict | Promise<Verdict> {
    let denied: Denied | undefined
    const later: Promise<readonly [Way, Recognised]>[] = []
    for (const way of rule.ways) {
      const recognised = way.recognise?.(visitor)
      if (recognised === undefined) continue
      if (recognised instanceof Promise) later.push(recognised.then(one => [way, one]))
      else if ('denied' in recognised) denied ??= recognised
      else return this.#passOf(visitor, recognised, way)
    }
    if (later.length === 0) return denied?.denied ?? this.#ask(visitor, rule)
    return Promise.all(later).then(all => {
      for (const [way, one] of all) {
        if (one === undefined) continue
        if ('denied' in one) denied ??= one
        else return this.#passOf(visitor, one, way)
      }
      return denied?.denied ?? this.#ask(visitor, rule)
    })
  }

  /** Responds to a visitor without credentials. */
  #ask(visitor: Request, { ways }: Rule): Verdict | Promise<Verdict> {
    const certificate = ways.find(way => way instanceof ClientCertificate)
    // A browser tries again on another connection, whose handshake is for this tunnel. This one takes no more requests.
    if (certificate?.isMisdirected(visitor)) return refusedAs('CONNECTION_MISDIRECTED', visitor)
    const asking = ways.find(way => way.ask !== undefined)
    if (asking?.ask !== undefined && isNavigation(visitor) && visitor.head.upgrade === '')
      return asking.ask(visitor, localPath(visitor.head.path), ways)
    if (ways.every(way => way === certificate)) return refusedAs('CERTIFICATE_REQUIRED', visitor)
    // A browser would show a dialog of its own, for each script and image.
    const isBrowser = visitor.head.header('sec-fetch-mode') !== undefined
    const challenges = isBrowser ? [] : ways.flatMap(({ challenge }) => challenge ?? [])
    return refusedAs('ACCESS_REQUIRED', visitor, [
      ['www-authenticate', [...challenges, ...(challenges.length === 0 ? [NO_CHALLENGE] : [])].join(', ')],
    ])
  }

  /** Responds to requests below `GUARD_PATH`: the forms of the sign-in methods. */
  #answer(visitor: Request, action: string): Verdict | Promise<Verdict> {
    const { head } = visitor
    const isPost = head.method === 'POST'
    // A form of another site must neither sign in nor out.
    if (isPost && !isOwn(visitor)) return refusedWithJson('GUARD_REFUSED')
    if (action === 'logout') return isPost ? this.#leave(visitor) : this.#askToLeave(visitor)
    if (action.startsWith('link/')) {
      const way = this.#wayOf(undefined, Links)
      return (
        way?.open(visitor, action.slice(5).replace(/\?.*$/, ''), this) ?? refusedAs('LINK_REFUSED', visitor)
      )
    }
    if (action === 'password' && isPost && this.#wayOf(undefined, Password) !== undefined)
      return Password.read(visitor, to => this.#waysTo(to), this)
    if (isCallback(head.path)) {
      const begun = begunLoginOf(visitor, this.#parts.key)
      const way = begun && this.#wayOf(begun.to, Login)
      return way === undefined || begun === undefined
        ? this.#orOther(visitor, '/', refusedAs('LOGIN_REFUSED', visitor, [], 'state_unknown'))
        : way.finish(visitor, begun, this).then(outcome => this.#orOther(visitor, begun.to, outcome))
    }
    const offered = offeredLoginOf(head.path)
    if (offered !== undefined && head.method === 'GET') return this.#beginLogin(visitor, offered)
    return refusedWithJson('GUARD_REFUSED')
  }

  /** Called when the visitor followed the link of a page. */
  #beginLogin(
    visitor: Request,
    { to, isOther }: { readonly to: string; readonly isOther: boolean },
  ): Verdict | Promise<Verdict> {
    const ways = this.#waysTo(to)
    const way = this.#wayOf(to, Login)
    // The response of that path shows its sign-in methods.
    if (way === undefined) return redirected(to)
    // A program that follows the link gets 401, with the sign-in methods for programs.
    return isNavigation(visitor)
      ? way.begin(visitor, to, isOther).then(outcome => this.#orOther(visitor, to, outcome))
      : this.#ask(visitor, { ways })
  }

  /** Offers another account after a failed login, and the password if the path accepts one. */
  #orOther(visitor: Request, to: string, outcome: Refusal): Refusal {
    const { code, headers, reason } = outcome
    if (code === undefined || !isNavigation(visitor)) return outcome
    const why = reason !== undefined && { reason }
    const password = this.#wayOf(to, Password)
    if (password !== undefined) return { ...password.ask(visitor, to, this.#waysTo(to), outcome), ...why }
    const login = this.#wayOf(to, Login)
    if (login === undefined || code !== 'LOGIN_REFUSED') return outcome
    const { meaning: text } = ERRORS[code]
    const form = { title: 'Not signed in', text, offers: [login.offer(to, code)], visitor }
    return { ...formPage(form, code, headers), ...why }
  }

  #leave(visitor: Request): Reading {
    return {
      maxBodyBytes: 1_024,
      read: () => ({
        status: 200,
        headers: [
          ['content-type', 'text/plain; charset=utf-8'],
          ['cache-control', 'no-store'],
          ['clear-site-data', '"cache"'],
          ['set-cookie', this.#parts.book.leave(visitor)],
        ],
        body: 'You are signed out.\n',
      }),
    }
  }

  #askToLeave(visitor: Request): Refusal {
    return formPage({
      title: 'Sign out?',
      text: 'This browser forgets that it was let in.',
      action: `${GUARD_PATH}logout`,
      button: 'Sign out',
      visitor,
    })
  }

  /** Returns the sign-in method of this class for a path; without a path, for any. */
  #wayOf<Kind extends Way>(to: string | undefined, kind: new (...given: never[]) => Kind): Kind | undefined {
    const ways = to === undefined ? this.#parts.paths.all.flatMap(rule => rule.ways) : this.#waysTo(to)
    return ways.find((way): way is Kind => way instanceof kind)
  }

  #waysTo(to: string): readonly Way[] {
    return this.#parts.paths.ruleOf(to)?.ways ?? []
  }

  #passOf(
    visitor: Request,
    { user, used = [], endsAt }: Entry,
    way?: Pick<Way, 'kind' | 'mark'>,
    session?: Session,
  ): Pass | Refusal {
    if (this.#leavesHeads) return this.#passUntouched(visitor)
    const { requestHeaders, responseHeaders } = this.#parts
    const name = user === undefined ? undefined : userText(user)
    // If it were truncated, it could be another user's.
    if (user !== undefined && name === undefined)
      return { ...refusedWithJson('CREDENTIALS_REFUSED'), reason: 'user_too_long' }
    const ids =
      session === undefined ? [] : [session.id, ...(session.link === undefined ? [] : [session.link])]
    return {
      withoutHeaders: [USER_HEADER, ...(this.#hasWays ? OTHER_PATHS : []), ...used],
      withoutCookies: COOKIES,
      requestHeaders: name === undefined ? requestHeaders : [...requestHeaders, [USER_HEADER, name]],
      ...(responseHeaders.length > 0 && { responseHeaders }),
      whileOpen: this.#keeping(visitor, way, ids, endsAt),
    }
  }

  #passUntouched(visitor: Admittance): Pass {
    return { whileOpen: this.#keeping(visitor, undefined, [], undefined) }
  }

  #keeping(
    { head, ...visitor }: Admittance,
    way: Pick<Way, 'kind' | 'mark'> | undefined,
    ids: readonly string[],
    endsAt: number | undefined,
  ): (cut: () => void) => () => void {
    const { book } = this.#parts
    const path = head?.path
    const permission: Permission = {
      visitor,
      path,
      way: way && { kind: way.kind, mark: way.mark },
      ids,
      endsAt: this.#endOf(endsAt),
    }
    return cut => book.kept.keep(permission, cut)
  }

  /**
   * Returns the permission under this guard. `undefined` if the visitor would not be admitted. `before`: the sessions
   * of the guard that admitted it.
   */
  #renewed(permission: Permission, before: SessionStore): Permission | undefined {
    const { visitor, path, way, ids } = permission
    const { walls, paths, book } = this.#parts
    // The rate counted the visitor at its arrival.
    if (walls.some(wall => !(wall instanceof Rate) && wall.admit(visitor) !== undefined)) return undefined
    const renewed = { ...permission, endsAt: this.#endOf(permission.endsAt) }
    if (path === undefined) return renewed
    const rule = paths.ruleOf(path)
    if (rule === undefined) return undefined
    if (rule.ways.length === 0) return renewed
    const isWay = rule.ways.some(({ kind, mark }) => kind === way?.kind && mark === way.mark)
    const isInForce = ids.length === 0 || (book.hasKeyOf(before) && !ids.some(id => book.hasEnded(id)))
    return isWay && isInForce ? renewed : undefined
  }

  #endOf(endsAt: number | undefined): number | undefined {
    const { endsAt: allEndAt } = this.#parts
    return allEndAt === undefined ? endsAt : Math.min(allEndAt, endsAt ?? Number.POSITIVE_INFINITY)
  }
}

/** The challenge that RFC 9110 requires with each 401. Browsers do not know it, so they show no dialog. */
const NO_CHALLENGE = 'Localtunnels'

function isFor(session: Session, { ways }: Rule, path: string): boolean {
  return covers(session, path) && ways.some(({ kind, mark }) => kind === session.way && mark === session.mark)
}

function isPreflight({ head }: Request): boolean {
  return (
    head.method === 'OPTIONS' &&
    head.upgrade === '' &&
    head.header('origin') !== undefined &&
    head.header('access-control-request-method') !== undefined &&
    head.header('transfer-encoding') === undefined &&
    /^0*$/.test(head.header('content-length') ?? '')
  )
}

/**
 * The middleware for preflights. Some apps respond to OPTIONS with the page, as to GET, so a visitor that has not
 * signed in only gets what a browser reads.
 */
const PREFLIGHTS: Middleware = {
  name: 'cors',
  async handle(request, next) {
    const answer = await next(request)
    await answer.body?.cancel()
    const headers = [...answer.headers].filter(([name]) => name.startsWith('access-control-'))
    return new Response(null, { status: answer.status, headers })
  },
}

/** Adds the lines without which a browser hides a refusal from a page of another site, which could not tell why it failed. */
function readableBy(origin: string, verdict: Verdict): Verdict {
  if (verdict === undefined || !('code' in verdict)) return verdict
  const lines: readonly HeaderLine[] = [
    ['access-control-allow-origin', origin],
    ['access-control-allow-credentials', 'true'],
    ['access-control-expose-headers', 'x-localtunnels-error, retry-after, ratelimit, ratelimit-policy'],
    ['vary', 'origin'],
  ]
  return { ...verdict, headers: [...(verdict.headers ?? []), ...lines] }
}

/** Whether the request comes from a page of this host, or from a program. */
function isOwn({ head }: Request): boolean {
  const site = head.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin') return false
  const origin = head.header('origin')
  return origin === undefined || origin.replace(/^https?:\/\//, '') === head.hostWithPort
}
