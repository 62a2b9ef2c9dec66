// The guard of one tunnel: all walls must let a visitor pass, and one of the ways in of the path is enough.

import { GUARD_PATH } from '../guard.ts'
import type { Admittance, Allotment, Guard, HeaderLine, Pass, Reading, Refusal, Verdict } from '../plugin.ts'
import { formPage, redirected, refusedWithJson } from './answers.ts'
import { Links } from './links.ts'
import { begunLoginOf, isCallback, Login } from './login.ts'
import { Password } from './password.ts'
import type { Paths, Rule } from './paths.ts'
import { COOKIES, covers, type Session, type SessionBook } from './sessions.ts'
import {
  type Denied,
  type Entry,
  isNavigation,
  localPath,
  type Recognised,
  type Request,
  type Sessions,
  type SessionTerms,
  type Way,
} from './way.ts'

/** Who the visitor is, where a way in says so. What visitors send under this name never reaches the app. */
export const USER_HEADER = 'x-localtunnels-user'

export interface TunnelGuardParts {
  readonly walls: readonly Guard[]
  readonly paths: Paths
  readonly book: SessionBook
  /** Signs logins under way. */
  readonly key: string
  /** Preflights pass. */
  readonly isCors: boolean
  readonly requestHeaders: readonly HeaderLine[]
  readonly answerHeaders: readonly HeaderLine[]
}

export class TunnelGuard implements Guard, Sessions {
  readonly name = 'tunnel'
  readonly #parts: TunnelGuardParts
  /** For visitors who need no way in. */
  readonly #passed: Pass
  readonly #hasWays: boolean

  constructor(parts: TunnelGuardParts) {
    this.#parts = parts
    this.#hasWays = parts.paths.allWays.length > 0
    const { requestHeaders, answerHeaders } = parts
    const isKept = !this.#hasWays && requestHeaders.length === 0 && answerHeaders.length === 0
    // A guard of walls alone has nothing that a visitor could pretend to be: the head stays as it is.
    this.#passed = isKept ? { whileOpen: cut => parts.book.keep([RAW], undefined, cut) } : this.#passOf({})
  }

  admit(visitor: Admittance): Verdict | Promise<Verdict> {
    for (const wall of this.#parts.walls) {
      const refusal = wall.admit(visitor)
      if (refusal !== undefined) return refusal
    }
    // Raw tunnels have walls only: their bytes have no credentials.
    if (visitor.head === undefined) return { whileOpen: cut => this.#parts.book.keep([RAW], undefined, cut) }
    return this.#admitRequest({ ...visitor, head: visitor.head })
  }

  /** Walls alone: a visitor that they let pass needs no look at its head. */
  allot(visitor: Admittance): Allotment | 'all' | undefined {
    const { requestHeaders, answerHeaders, walls } = this.#parts
    if (this.#hasWays || requestHeaders.length > 0 || answerHeaders.length > 0) return undefined
    let all: Allotment | 'all' = 'all'
    for (const wall of walls) {
      const allotted = wall.allot?.(visitor)
      // There is one rate of a guard.
      if (allotted === undefined || (allotted !== 'all' && all !== 'all')) return undefined
      if (allotted !== 'all') all = allotted
    }
    return all
  }

  close(): void {
    this.#parts.book.close()
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
    if (rule.ways.length === 0 || (this.#parts.isCors && isPreflight(visitor))) return this.#passed
    const session = this.#parts.book.of(visitor).find(one => isFor(one, rule, head.path))
    if (session !== undefined)
      return this.#passOf(
        { ...(session.user !== undefined && { user: session.user }), endsAt: session.endsAt },
        session,
      )
    return this.#recognise(visitor, rule)
  }

  #recognise(visitor: Request, rule: Rule): Verdict | Promise<Verdict> {
    let denied: Denied | undefined
    const later: Promise<Recognised>[] = []
    for (const way of rule.ways) {
      const recognised = way.recognise?.(visitor)
      if (recognised === undefined) continue
      if (recognised instanceof Promise) later.push(recognised)
      else if ('denied' in recognised) denied ??= recognised
      else return this.#passOf(recognised)
    }
    if (later.length === 0) return denied?.denied ?? this.#ask(visitor, rule)
    return Promise.all(later).then(all => {
      for (const one of all) {
        if (one === undefined) continue
        if ('denied' in one) denied ??= one
        else return this.#passOf(one)
      }
      return denied?.denied ?? this.#ask(visitor, rule)
    })
  }

  /** The visitor has no credentials. */
  #ask(visitor: Request, { ways }: Rule): Verdict | Promise<Verdict> {
    const asking = ways.find(way => way.ask !== undefined)
    if (asking?.ask !== undefined && isNavigation(visitor) && visitor.head.upgrade === '')
      return asking.ask(visitor, localPath(visitor.head.path))
    // A browser would ask its user by a window of its own, for each script and image.
    const isBrowser = visitor.head.header('sec-fetch-mode') !== undefined
    const challenges = isBrowser ? [] : ways.flatMap(({ challenge }) => challenge ?? [])
    return refusedWithJson('ACCESS_REQUIRED', [
      ['www-authenticate', [...challenges, ...(challenges.length === 0 ? [NO_CHALLENGE] : [])].join(', ')],
    ])
  }

  /** What is below `GUARD_PATH`: the forms of the ways in. */
  #answer(visitor: Request, action: string): Verdict | Promise<Verdict> {
    const { head } = visitor
    const isPost = head.method === 'POST'
    // A form of another site must neither sign in nor out.
    if (isPost && !isOwn(visitor)) return refusedWithJson('GUARD_REFUSED')
    if (action === 'logout') return isPost ? this.#leave(visitor) : this.#askToLeave(visitor)
    if (action.startsWith('link/')) {
      const way = this.#wayOf(undefined, Links)
      return way?.open(visitor, action.slice(5).replace(/\?.*$/, ''), this) ?? refusedWithJson('LINK_REFUSED')
    }
    if (action === 'password' && isPost)
      return (
        this.#wayOf(undefined, Password)?.read(visitor, to => ({
          sessions: this,
          way: this.#wayOf(to, Password),
        })) ?? refusedWithJson('GUARD_REFUSED')
      )
    if (isCallback(head.path)) {
      const begun = begunLoginOf(visitor, this.#parts.key)
      const way = begun && this.#wayOf(begun.to, Login)
      return way === undefined || begun === undefined
        ? isNavigation(visitor)
          ? { code: 'LOGIN_REFUSED' }
          : refusedWithJson('LOGIN_REFUSED')
        : way.finish(visitor, begun, this)
    }
    return refusedWithJson('GUARD_REFUSED')
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
      host: visitor.head.host,
    })
  }

  /** The way of this kind to a path; without a path, to any. */
  #wayOf<Kind extends Way>(to: string | undefined, kind: new (...given: never[]) => Kind): Kind | undefined {
    const ways = to === undefined ? this.#parts.paths.allWays : (this.#parts.paths.ruleOf(to)?.ways ?? [])
    return ways.find((way): way is Kind => way instanceof kind)
  }

  #passOf({ user, used = [], endsAt }: Entry, session?: Session): Pass {
    const { book, requestHeaders, answerHeaders } = this.#parts
    const ids =
      session === undefined ? [] : [session.id, ...(session.link === undefined ? [] : [session.link])]
    return {
      withoutHeaders: [USER_HEADER, ...used],
      withoutCookies: COOKIES,
      requestHeaders:
        user === undefined ? requestHeaders : [...requestHeaders, [USER_HEADER, plainText(user)]],
      ...(answerHeaders.length > 0 && { answerHeaders }),
      whileOpen: cut => book.keep([RAW, ...ids], endsAt, cut),
    }
  }
}

/** All connections that are kept are kept under this one, too. */
const RAW = '*'
/** RFC 9110 wants a challenge with each 401, and browsers know this one not. */
const NO_CHALLENGE = 'Localtunnels'

function isFor(session: Session, { ways }: Rule, path: string): boolean {
  return covers(session, path) && ways.some(({ kind, mark }) => kind === session.way && mark === session.mark)
}

function isPreflight({ head }: Request): boolean {
  return (
    head.method === 'OPTIONS' &&
    head.header('origin') !== undefined &&
    head.header('access-control-request-method') !== undefined
  )
}

/** Sent by a page of this host, or by a program. */
function isOwn({ head }: Request): boolean {
  const site = head.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin') return false
  const origin = head.header('origin')
  return origin === undefined || origin.replace(/^https?:\/\//, '') === head.hostWithPort
}

/** What an issuer says of a user becomes one header line. */
function plainText(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 255)
}
