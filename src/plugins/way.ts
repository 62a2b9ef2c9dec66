// Contract: a sign-in method. A visitor needs one of those for a path.

import type { ErrorCode } from '../errors.ts'
import type { Admittance, HeaderLine, Refusal, Verdict, VisitorHead } from '../plugin.ts'

/** A visitor's request. */
export interface Request extends Admittance {
  readonly head: VisitorHead
}

/** The result for an admitted visitor. */
export interface Entry {
  /** The user, if the method knows it: the app gets it as `x-localtunnels-user`. */
  readonly user?: string
  /** The headers that contain the used credentials. */
  readonly used?: readonly string[]
  /** The time when the permission ends, in milliseconds since 1970. */
  readonly endsAt?: number
}

/** The result for a request whose credentials for this method are refused. */
export interface Denied {
  readonly denied: Refusal
}

export type Recognised = undefined | Entry | Denied

export interface Way {
  readonly kind: WayKind
  /** The mark of the credentials that it admits: if it changes, the sessions that it started end. */
  readonly mark: string
  /** The challenge (WWW-Authenticate) for a program without credentials. */
  readonly challenge?: string
  /** Checks the credentials in the request itself. `undefined` if it has none for this method. */
  recognise?(visitor: Request): Recognised | Promise<Recognised>
  /** Shows a page to a person without credentials. `ways`: all methods for `to`, including this one. */
  ask?(visitor: Request, to: string, ways: readonly Way[]): Verdict | Promise<Verdict>
  /** Returns the offer of this method on a page. `failed`: the code of its last failure. */
  offer?(to: string, failed?: ErrorCode): Offer
}

/** The conditions for a visit to a path. */
export interface Rule {
  /** The sign-in methods. A visitor needs one of them; without any, everybody may visit. */
  readonly ways: readonly Way[]
}

/** A link to a sign-in method. */
export interface Offer {
  readonly text: string
  /** The path on this host. */
  readonly href: string
}

export type WayKind = 'password' | 'bearer' | 'jwt' | 'links' | 'login' | 'certificate'

/** The operations of the guard that a method with sessions needs. */
export interface Sessions {
  /** Redirects to `to`, with the cookie of a session of this sign-in method. */
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
  /** The path of the session, which includes those below it. */
  readonly path?: string
  /** The time when it ends, in milliseconds since 1970. Default: that of the guard. */
  readonly endsAt?: number
  /** The id of its link. If the link is revoked, its sessions end too. */
  readonly link?: string
}

/** Whether a browser is about to show the response as a page. Scripts, images and programs get JSON. */
export function isNavigation({ head }: Request): boolean {
  return head.header('sec-fetch-mode') === 'navigate'
}

/** Returns the credentials after a scheme of Authorization, such as `basic`. */
export function credentialsOf({ head }: Request, scheme: string): string | undefined {
  const value = head.header('authorization')
  if (value === undefined || value.length > MAX_CREDENTIALS_CHARS) return undefined
  if (value.slice(0, scheme.length + 1).toLowerCase() !== `${scheme} `) return undefined
  return value.slice(scheme.length + 1).trim()
}

const MAX_CREDENTIALS_CHARS = 8_192

/**
 * Returns the name of a user as a header value of visible ASCII with blanks inside. Other characters, and `%`, are
 * escaped, so that two users never have the same text. `undefined` if it is too long, or not a text.
 */
export function userText(user: string): string | undefined {
  if (!user.isWellFormed()) return undefined
  const text = user.replace(/^ +|%|[^\x20-\x7e]+| +$/g, encodeURIComponent)
  return text !== '' && text.length <= MAX_USER_CHARS ? text : undefined
}

/** The maximum length of a user. Four sessions with their users fit into one cookie. */
const MAX_USER_CHARS = 512

/** Returns the path to open after the sign-in, on this host only. */
export function localPath(text: string | undefined): string {
  const isLocal = text !== undefined && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,2047}$/.test(text)
  return isLocal ? text : '/'
}
