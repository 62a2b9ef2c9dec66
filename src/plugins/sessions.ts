// The sessions of browsers: signed cookies, and the sessions that ended early.

import { randomBytes } from 'node:crypto'
import { sha256 } from '../own-guard.ts'
import { isSurelyBelow } from '../paths/path-rules.ts'
import type { GuardedTunnel, UsedMarks } from '../plugin.ts'
import { seal, unseal } from '../seal.ts'
import type { UsedLinks } from '../store.ts'
import { Kept } from './kept.ts'
import type { Request, SessionTerms, Way, WayKind } from './way.ts'

/**
 * The cookie for https. `__Host-`: browsers send it only to this host, and no other host can set it (RFC 6265bis section
 * 4.1.3.2).
 */
const SECURE_COOKIE = '__Host-localtunnels'
/** The cookie for http, because `__Host-` needs https. */
const PLAIN_COOKIE = 'localtunnels-guard'
/**
 * The numbers of one browser's logins in progress: it may open several tabs at once, each of which begins one. Each
 * has its own cookie, because responses may come in any order.
 */
const LOGINS = [0, 1, 2, 3, 4, 5, 6, 7]
const SECURE_LOGINS = LOGINS.map(number => `${SECURE_COOKIE}-login-${number}`)
const PLAIN_LOGINS = LOGINS.map(number => `${PLAIN_COOKIE}-login-${number}`)
/** The cookies that the app does not get. */
export const COOKIES: readonly string[] = [SECURE_COOKIE, PLAIN_COOKIE, ...SECURE_LOGINS, ...PLAIN_LOGINS]

/** The maximum number of sessions in one cookie, because paths may have different sign-in methods. */
const MAX_TOGETHER = 4
/**
 * The maximum number of ended sessions and revoked links that are remembered until they would have expired. If
 * exceeded, the oldest is forgotten.
 */
const MAX_ENDED = 10_000
/**
 * The number of ended sessions and links of one tunnel that are shared with the cluster's other servers at a time. If
 * exceeded, only this server knows of them.
 */
export const MAX_SHARED_ENDS = 1_000
/** The maximum number of used links that are remembered until they expire. If exceeded, links that work once are refused. */
const MAX_USED = 10_000
const PURPOSE = 'session'

export interface Session {
  readonly id: string
  /** The name of the session's tunnel: other tunnels may have the same secret, and do not know which sessions ended here. */
  readonly tunnel: string
  readonly way: WayKind
  readonly mark: string
  readonly user: string | undefined
  /** The path of the session, with all paths below. */
  readonly path: string | undefined
  readonly link: string | undefined
  /** The time when it ends, in milliseconds since 1970. */
  readonly endsAt: number
}

export class SessionStore {
  readonly #key: string
  readonly #sessionMs: number
  readonly #revoked: ReadonlySet<string>
  /** The ids of ended sessions and links, with the time when each may be forgotten. */
  readonly #ended = new Map<string, number>()
  /** The used links that work once, with the time when each expires. */
  readonly #used = new Map<string, number>()
  /** The store that remembers them across restarts of the server. `undefined` without one. */
  readonly #kept: UsedLinks | undefined
  /** The marks that all servers of a cluster share. `undefined` if the server is alone. */
  readonly #marks: UsedMarks | undefined
  /** The owner that the entries count for. */
  readonly #owner: string
  /** A prefix of ids: clients choose ids, so the same id with another key is another link. */
  readonly #space: string
  /** The visits that sessions, links and other permissions keep open. */
  readonly kept: Kept

  /** Makes the collection of sessions and links. `revoked`: ids of revoked links. */
  constructor(
    key: string,
    sessionMs: number,
    revoked: readonly string[] = [],
    usedLinks?: UsedLinks,
    { marks, owner = '' }: Pick<GuardedTunnel, 'marks' | 'owner'> = {},
  ) {
    this.#kept = usedLinks
    this.#owner = owner
    this.#marks = marks
    this.kept = new Kept(
      marks && { hasEnded: id => this.hasEnded(id), onEnd: changed => marks.onEnd(changed) },
    )
    this.#space = (usedLinks ?? marks) === undefined ? '' : sha256(`used ${key}`).toString('base64url')
    this.#key = key
    this.#sessionMs = sessionMs
    this.#revoked = new Set(revoked)
  }

  of(visitor: Request): readonly Session[] {
    const now = Date.now()
    return this.#sealed(visitor).flatMap(sealed => {
      const session = sessionIn(unseal(this.#key, PURPOSE, sealed))
      if (session === undefined || session.tunnel !== visitor.tunnel || session.endsAt <= now) return []
      const isEnded = this.hasEnded(session.id) || (session.link !== undefined && this.hasEnded(session.link))
      return isEnded ? [] : [session]
    })
  }

  /** Returns the Set-Cookie for one more session of this visitor. */
  begin(visitor: Request, { kind, mark }: Way, terms: SessionTerms): string {
    const endsAt = Math.min(terms.endsAt ?? Number.POSITIVE_INFINITY, Date.now() + this.#sessionMs)
    const sealed = seal(this.#key, PURPOSE, {
      id: randomBytes(12).toString('base64url'),
      t: visitor.tunnel,
      w: kind,
      m: mark,
      e: Math.floor(endsAt / 1_000),
      ...(terms.user !== undefined && { u: terms.user }),
      ...(terms.path !== undefined && { p: terms.path }),
      ...(terms.link !== undefined && { l: terms.link }),
    })
    const others = this.#sealed(visitor).filter(one => {
      const session = sessionIn(unseal(this.#key, PURPOSE, one))
      if (session === undefined || session.endsAt <= Date.now()) return false
      return session.way !== kind || session.mark !== mark || session.path !== terms.path
    })
    const all = [sealed, ...others].slice(0, MAX_TOGETHER)
    return cookieOf(visitor, all.join('~'), Math.max(1, Math.floor((endsAt - Date.now()) / 1_000)))
  }

  /** Ends all sessions of this visitor. Returns the Set-Cookie that removes the cookie. */
  leave(visitor: Request): string {
    for (const { id, endsAt } of this.of(visitor)) this.end(id, endsAt)
    return cookieOf(visitor, '', 0)
  }

  /** Ends a session, or those of a link, and their open connections. */
  end(id: string, forgetAt: number): void {
    this.#ended.delete(id)
    this.#ended.set(id, forgetAt)
    const [oldest] = this.#ended
    if (oldest !== undefined && (this.#ended.size > MAX_ENDED || oldest[1] < Date.now()))
      this.#ended.delete(oldest[0])
    if (this.#ended.size <= MAX_SHARED_ENDS) this.#marks?.end(this.#wholeOf(id), forgetAt, this.#owner)
    this.kept.end(id)
  }

  hasEnded(id: string): boolean {
    if (this.#revoked.has(id) || this.#ended.has(id)) return true
    return this.#marks?.hasEnded(this.#wholeOf(id)) === true
  }

  #wholeOf(id: string): string {
    return `${this.#space} ${id}`
  }

  hasUsed(id: string): boolean {
    if (this.#used.has(id)) return true
    const whole = this.#wholeOf(id)
    return this.#kept?.has(whole) === true || this.#marks?.has(whole) === true
  }

  /**
   * Uses up a link that works once. Returns `false` if it was used before, or there is no room to remember it.
   * Rejects if the other servers cannot be asked; it may work later.
   */
  async use(id: string, expiresAt: number): Promise<boolean> {
    const whole = this.#wholeOf(id)
    const now = Date.now()
    if (this.#used.size >= MAX_USED)
      for (const [one, endsAt] of this.#used) if (endsAt < now) this.#used.delete(one)
    if (this.#used.size >= MAX_USED) return false
    if (this.#marks !== undefined && !(await this.#marks.take(whole, expiresAt, this.#owner))) return false
    if (this.#used.has(id) || this.#kept?.use(whole, expiresAt, this.#owner) === false) return false
    this.#used.set(id, expiresAt)
    return true
  }

  /** Takes the ended sessions from the previous guard. */
  follow(before: SessionStore): void {
    for (const [id, forgetAt] of before.#ended) this.#ended.set(id, forgetAt)
    for (const [id, expiresAt] of before.#used) this.#used.set(id, expiresAt)
  }

  /** Whether its sessions are signed with the same key. */
  hasKeyOf(other: SessionStore): boolean {
    return this.#key === other.#key
  }

  #sealed(visitor: Request): readonly string[] {
    return cookiesOf(visitor, [visitor.isSecure ? SECURE_COOKIE : PLAIN_COOKIE])
      .flatMap(([, value]) => value.split('~', MAX_TOGETHER))
      .slice(0, 2 * MAX_TOGETHER)
  }
}

/** Returns the cookie of a login in progress, as strict as that of a session. */
export function loginCookieOf(visitor: Request, name: string, value: string, seconds: number): string {
  return cookieOf(visitor, value, seconds, name)
}

/**
 * Returns the name for another login, one that this browser does not have if possible. `turn`: a different number for each login.
 */
export function loginNameOf(visitor: Request, turn: number): string {
  const names = visitor.isSecure ? SECURE_LOGINS : PLAIN_LOGINS
  const from = turn % names.length
  const turned = [...names.slice(from), ...names.slice(0, from)]
  const taken = new Set(cookiesOf(visitor, names).map(([name]) => name))
  return turned.find(name => !taken.has(name)) ?? turned[0]!
}

/** Returns the names and values of those cookies. Each costs a signature check, so only the first ones count. */
export function loginCookiesOf(visitor: Request): readonly (readonly [name: string, value: string])[] {
  const names = visitor.isSecure ? SECURE_LOGINS : PLAIN_LOGINS
  return cookiesOf(visitor, names).slice(0, names.length)
}

function cookieOf(
  { isSecure }: Request,
  value: string,
  seconds: number,
  name = isSecure ? SECURE_COOKIE : PLAIN_COOKIE,
): string {
  // Lax: a link from another site opens the app, and no other request of another site contains the cookie.
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

function cookiesOf(
  { head }: Request,
  names: readonly string[],
): readonly (readonly [name: string, value: string])[] {
  const found: [string, string][] = []
  for (const line of head.headers('cookie'))
    for (const cookie of line.split(';')) {
      const at = cookie.indexOf('=')
      const name = at < 0 ? '' : withoutBlanks(cookie.slice(0, at))
      if (names.includes(name)) found.push([name, withoutBlanks(cookie.slice(at + 1))])
    }
  return found
}

/**
 * Removes blanks as browsers do. `trim` removes more, so that a cookie which a browser does not treat as `__Host-`
 * would count here.
 */
function withoutBlanks(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, '')
}

function sessionIn(content: Record<string, unknown> | undefined): Session | undefined {
  if (content === undefined) return undefined
  const { id, t, w, m, e, u, p, l } = content
  const isSession =
    typeof id === 'string' &&
    typeof t === 'string' &&
    isWay(w) &&
    typeof m === 'string' &&
    typeof e === 'number'
  if (!isSession) return undefined
  return {
    id,
    tunnel: t,
    way: w,
    mark: m,
    endsAt: e * 1_000,
    user: textOf(u),
    path: textOf(p),
    link: textOf(l),
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const isWay = (value: unknown): value is WayKind =>
  value === 'password' || value === 'bearer' || value === 'jwt' || value === 'links' || value === 'login'

/** Whether the session is for this path, in every reading that the app may have of it. */
export function covers({ path }: Session, target: string): boolean {
  if (path === undefined || path === '/') return true
  return isSurelyBelow(target, path.replace(/\?.*$/, '').replace(/(?<=.)\/+$/, ''))
}
