// A sign-in method: one shared password. A page asks people for it, programs send it with HTTP Basic and any user name.

import { timingSafeEqual } from 'node:crypto'
import { ERRORS, type ErrorCode } from '../errors.ts'
import { Gcra } from '../gcra.ts'
import { hashPassword, sha256 } from '../own-guard.ts'
import type { HeaderLine, Reading, Refusal } from '../plugin.ts'
import { sourceOf } from './addresses.ts'
import { fieldsOf, formPage, redirected, refusedWithJson } from './answers.ts'
import type { HashTurns } from './hash-turns.ts'
import { credentialsOf, localPath, type Recognised, type Request, type Sessions, type Way } from './way.ts'

export const WRONG_PASSWORDS = { limit: 10, windowMs: 60_000 }
/** The maximum number of correct credentials that are remembered, so that each is hashed once. */
const MAX_KNOWN = 1_000
const MAX_FORM_BYTES = 8_192

export class Password implements Way {
  readonly kind = 'password'
  readonly mark: string
  readonly challenge: string
  readonly #salt: string
  readonly #hash: Buffer
  readonly #wrong: Gcra = new Gcra(WRONG_PASSWORDS)
  /** The SHA-256 of correct credentials, whose text is not stored. */
  readonly #known = new Set<string>()
  /** The checks in progress by address and password: the requests of one page come together, and count as one guess. */
  readonly #checking = new Map<string, Promise<Fault | undefined>>()
  readonly #turns: HashTurns
  /** Identifies the tunnel in `HashTurns`, where all passwords of one tunnel share a turn. */
  readonly #guard: object

  constructor(
    { salt, hash }: { readonly salt: string; readonly hash: string },
    realm: string,
    turns: HashTurns,
    guard: object,
  ) {
    this.#turns = turns
    this.#guard = guard
    this.#salt = salt
    this.#hash = Buffer.from(hash, 'base64url')
    this.mark = sha256(`${salt} ${hash}`).toString('base64url').slice(0, 12)
    this.challenge = `Basic realm="${realm}", charset="UTF-8"`
  }

  recognise(visitor: Request): Recognised | Promise<Recognised> {
    const credentials = credentialsOf(visitor, 'basic')
    if (credentials === undefined) return undefined
    const text = Buffer.from(credentials, 'base64').toString()
    const password = text.slice(text.indexOf(':') + 1)
    if (this.#known.has(keyOf(password))) return ENTRY
    return this.#check(visitor, password).then(fault =>
      fault === undefined ? ENTRY : { denied: refusedWithJson(fault, retryAfter(fault)) },
    )
  }

  /** Shows the form. `failed` is the refusal of another sign-in method on the page. */
  ask(visitor: Request, to: string, ways: readonly Way[], failed: Refusal = {}): Refusal {
    return page(visitor, to, ways, failed.code, failed.headers)
  }

  /** Called when the form was sent. */
  static read(visitor: Request, waysTo: (to: string) => readonly Way[], sessions: Sessions): Reading {
    return {
      maxBodyBytes: MAX_FORM_BYTES,
      read: async body => {
        const fields = fieldsOf(body)
        const to = localPath(fields.get('to') ?? undefined)
        const ways = waysTo(to)
        const way = ways.find(one => one instanceof Password)
        // The response of that path shows its sign-in methods.
        if (way === undefined) return redirected(to)
        const fault = await way.#check(visitor, fields.get('password') ?? '')
        if (fault !== undefined) return page(visitor, to, ways, fault, retryAfter(fault))
        return sessions.begin(visitor, way, to, {})
      },
    }
  }

  /** Returns why the password is refused. `undefined` if it is right. */
  #check({ address }: Request, password: string): Promise<Fault | undefined> {
    const source = sourceOf(address)
    const key = keyOf(password)
    const both = `${source} ${key}`
    const under = this.#checking.get(both)
    if (under !== undefined) return under
    const check = this.#checkOne(source, key, password).finally(() => this.#checking.delete(both))
    this.#checking.set(both, check)
    return check
  }

  async #checkOne(source: string, key: string, password: string): Promise<Fault | undefined> {
    if (this.#wrong.waitOf(source, performance.now()) > 0) return 'RATE_LIMITED'
    if (password.length === 0 || password.length > 256) return 'CREDENTIALS_REFUSED'
    if (this.#known.has(key)) return undefined
    // Counted before the result is known, so that concurrent guesses do not count as one.
    this.#wrong.count(source, performance.now())
    const hash = await this.#turns.take(this.#guard, () => hashPassword(password, this.#salt))
    if (hash === undefined) return 'RATE_LIMITED'
    if (hash.length !== this.#hash.length || !timingSafeEqual(hash, this.#hash)) return 'CREDENTIALS_REFUSED'
    this.#wrong.giveBack(source)
    this.#known.add(key)
    for (const oldest of this.#known) {
      if (this.#known.size <= MAX_KNOWN) break
      this.#known.delete(oldest)
    }
    return undefined
  }
}

type Fault = 'CREDENTIALS_REFUSED' | 'RATE_LIMITED'

const ENTRY = { used: ['authorization'] } as const

function keyOf(password: string): string {
  return sha256(password).toString('base64')
}

function retryAfter(fault: Fault): readonly HeaderLine[] {
  return fault === 'RATE_LIMITED'
    ? [['retry-after', String(WRONG_PASSWORDS.windowMs / WRONG_PASSWORDS.limit / 1_000)]]
    : []
}

const WARNINGS: Partial<Record<ErrorCode, string>> = {
  CREDENTIALS_REFUSED: 'That is not the password. Try again.',
  RATE_LIMITED: 'Too many wrong passwords came from your address. Wait a few seconds, then try again.',
}

function page(
  visitor: Request,
  to: string,
  ways: readonly Way[],
  code: ErrorCode = 'ACCESS_REQUIRED',
  headers: readonly HeaderLine[] = [],
): Refusal {
  const offers = ways.flatMap(way => way.offer?.(to, code) ?? [])
  const warning = WARNINGS[code] ?? ERRORS[code].meaning
  return formPage(
    {
      ...(offers.length === 0 ? ALONE : BESIDE),
      warning: code === 'ACCESS_REQUIRED' ? undefined : warning,
      action: '/.localtunnels/password',
      hidden: { to },
      hasPassword: true,
      button: 'Open',
      offers,
      visitor,
    },
    code,
    headers,
  )
}

const ALONE = {
  title: 'Password needed',
  text: 'The app behind this address is shared with those who know its password.',
}
const BESIDE = {
  title: 'Sign in',
  text: 'The app behind this address is shared with those who know its password or have an account. One of the two is enough.',
}
