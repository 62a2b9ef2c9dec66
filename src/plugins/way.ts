// Contract: a way in. Of the ways of a path, one that lets the visitor in is enough.

import type { ErrorCode } from '../errors.ts'
import type { Admittance, HeaderLine, Refusal, Verdict, VisitorHead } from '../plugin.ts'

/** A visitor's request. */
export interface Request extends Admittance {
  readonly head: VisitorHead
}

/** The visitor is let in. */
export interface Entry {
  /** Who it is, where the way says so: the app gets it as `x-localtunnels-user`. */
  readonly user?: string
  /** Headers that were used up. */
  readonly used?: readonly string[]
  /** When the permission ends, in milliseconds since 1970. */
  readonly endsAt?: number
}

/** The request has credentials for this way, and they do not let it in. */
export interface Denied {
  readonly denied: Refusal
}

export type Recognised = undefined | Entry | Denied

export interface Way {
  readonly kind: WayKind
  /** Another one when it lets in others than before: the sessions that it began end then. */
  readonly mark: string
  /** What a program gets that comes without credentials (WWW-Authenticate). */
  readonly challenge?: string
  /** Looks for credentials in the request itself. `undefined`: there are none for this way. */
  recognise?(visitor: Request): Recognised | Promise<Recognised>
  /** What a person in a browser is shown who comes without credentials. `ways`: all that lead to `to`, this one among them. */
  ask?(visitor: Request, to: string, ways: readonly Way[]): Verdict | Promise<Verdict>
  /** How a page offers this one. `failed`: what it has come to just now. */
  offer?(to: string, failed?: ErrorCode): Offer
}

/** What it takes to visit a path. */
export interface Rule {
  /** One of them is enough; with none, everybody may visit. */
  readonly ways: readonly Way[]
}

/** A link to a way in. */
export interface Offer {
  readonly text: string
  /** Path on this host. */
  readonly href: string
}

export type WayKind = 'password' | 'bearer' | 'jwt' | 'links' | 'login' | 'certificate'

/** What a way that leads to a session needs of the guard. */
export interface Sessions {
  /** Answers with the way to `to` and the cookie of a session that lets in by this way. */
  begin(
    visitor: Request,
    way: Way,
    to: string,
    session: SessionTerms,
    headers?: readonly HeaderLine[],
  ): Refusal
}

export interface SessionTerms {
  readonly user?: string
  /** The session is for this path and those below it. */
  readonly path?: string
  /** Milliseconds since 1970; default as the guard says. */
  readonly endsAt?: number
  /** A link's id: when it is taken back, so are its sessions. */
  readonly link?: string
}

/** A page is shown only where a browser is about to show it: scripts, images and programs get JSON. */
export function isNavigation({ head }: Request): boolean {
  return head.header('sec-fetch-mode') === 'navigate'
}

/** The credentials behind a scheme of Authorization, such as `basic`. */
export function credentialsOf({ head }: Request, scheme: string): string | undefined {
  const value = head.header('authorization')
  if (value === undefined || value.length > MAX_CREDENTIALS_CHARS) return undefined
  if (value.slice(0, scheme.length + 1).toLowerCase() !== `${scheme} `) return undefined
  return value.slice(scheme.length + 1).trim()
}

const MAX_CREDENTIALS_CHARS = 8_192

/**
 * What an app gets to know of a user: a header line of visible ASCII and blanks inside. Other characters, and `%`, are escaped, so that two
 * users never have one text. `undefined`: it is too long, or no text.
 */
export function userText(user: string): string | undefined {
  if (!user.isWellFormed()) return undefined
  const text = user.replace(/^ +|%|[^\x20-\x7e]+| +$/g, encodeURIComponent)
  return text !== '' && text.length <= MAX_USER_CHARS ? text : undefined
}

/** Four sessions, each with its user, fit into one cookie. */
const MAX_USER_CHARS = 512

/** Where a page leads when the visitor is let in: on this host, and nowhere else. */
export function localPath(text: string | undefined): string {
  const isLocal = text !== undefined && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2047}$/.test(text)
  return isLocal ? text : '/'
}
