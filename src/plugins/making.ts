// Makes the guard of a tunnel from its definition.

import { timingSafeEqual } from 'node:crypto'
import type { Countries } from '../countries.ts'
import { optionInvalid, TunnelError } from '../errors.ts'
import type { GuardDefinition, WaysDefinition } from '../guard.ts'
import { sha256 } from '../own-guard.ts'
import { PathRules } from '../paths/path-rules.ts'
import type { Guard, GuardedTunnel, GuardMaker, HeaderLine, Refusal } from '../plugin.ts'
import type { UsedLinks } from '../store.ts'
import { Addresses } from './addresses.ts'
import { refusedWithJson } from './answers.ts'
import { ClientCertificate } from './certificate.ts'
import { parseDefinition } from './definition.ts'
import type { GuardingOptions } from './guarding.ts'
import { HashTurns } from './hash-turns.ts'
import { IssuerKeys, Jwt } from './jwt.ts'
import { Links } from './links.ts'
import { Login, LoginClient } from './login.ts'
import { Password } from './password.ts'
import { Rate } from './rate.ts'
import { SessionStore } from './sessions.ts'
import { TunnelGuard } from './tunnel-guard.ts'
import { credentialsOf, type Recognised, type Request, type Rule, type Way } from './way.ts'

export function makerOf({ issuers = [], logins = [], usedLinks, countries }: GuardingOptions): GuardMaker {
  const keys = new Map([...logins, ...issuers].map(one => [one.issuer, new IssuerKeys(one)]))
  const clients = new Map(logins.map(one => [one.issuer, new LoginClient(one)]))
  const turns = new HashTurns()
  return async (given, tunnel) => {
    const definition = parseDefinition(given)
    // Lists of addresses take the longest, so they are made before anything is awaited, in the turn of the client that asks.
    const walls = wallsOf(definition, countries)
    const open = typeof usedLinks === 'function' ? usedLinks : () => Promise.resolve(usedLinks)
    const used = hasLinks(definition) ? await open() : undefined
    return new Making(definition, tunnel, keys, clients, turns, used).guard(walls)
  }
}

/** Returns the authorities of a guard, because TLS asks for certificates before there is a path. Throws `OPTION_INVALID`. */
function clientCaOf({ certificate, paths = {} }: GuardDefinition): string | undefined {
  const all = [certificate, ...Object.values(paths).map(ways => ways.certificate)].flatMap(
    rule => rule?.ca ?? [],
  )
  if (new Set(all).size <= 1) return all[0]
  throw optionInvalid('guard: all certificate rules of a guard need the same ca.')
}

function hasLinks({ links, paths = {} }: GuardDefinition): boolean {
  return links === true || Object.values(paths).some(ways => ways.links === true)
}

function wallsOf({ allow, deny, rate, leftMs }: GuardDefinition, countries: Countries | undefined): Guard[] {
  const walls: Guard[] = []
  if (leftMs !== undefined) walls.push(new Expiry(leftMs))
  if (allow !== undefined || deny !== undefined) walls.push(new Addresses(allow, deny, countries))
  if (rate !== undefined) walls.push(new Rate(rate))
  return walls
}

class Making {
  readonly #definition: GuardDefinition
  readonly #tunnel: GuardedTunnel
  readonly #keys: ReadonlyMap<string, IssuerKeys>
  readonly #clients: ReadonlyMap<string, LoginClient>
  readonly #book: SessionStore
  readonly #turns: HashTurns

  constructor(
    definition: GuardDefinition,
    tunnel: GuardedTunnel,
    keys: ReadonlyMap<string, IssuerKeys>,
    clients: ReadonlyMap<string, LoginClient>,
    turns: HashTurns,
    usedLinks: UsedLinks | undefined,
  ) {
    this.#turns = turns
    this.#definition = definition
    this.#tunnel = tunnel
    this.#keys = keys
    this.#clients = clients
    const { key, sessionMs, revoked } = definition
    this.#book = new SessionStore(key, sessionMs, revoked, usedLinks, tunnel)
  }

  async guard(walls: readonly Guard[]): Promise<Guard> {
    const {
      open = [],
      paths = {},
      cors = false,
      requestHeaders,
      responseHeaders,
      key,
      leftMs,
    } = this.#definition
    this.#checkKind()
    const rules: Record<string, Rule> = Object.create(null)
    for (const [path, ways] of Object.entries(paths)) rules[path] = { ways: await this.#waysOf(ways) }
    return new TunnelGuard({
      walls,
      paths: new PathRules({ ways: await this.#waysOf(this.#definition) }, rules, open, OPEN),
      book: this.#book,
      key,
      isCors: cors,
      requestHeaders: linesOf(requestHeaders),
      responseHeaders: linesOf(responseHeaders),
      endsAt: leftMs === undefined ? undefined : Date.now() + leftMs,
      clientCa: clientCaOf(this.#definition),
    })
  }

  /** Throws for sign-in methods of raw tunnels: bytes have no credentials, so a password would never be asked for. */
  #checkKind(): void {
    if (this.#tunnel.kind === 'http') return
    const { allow: _a, deny: _d, rate: _r, leftMs: _l, key: _k, sessionMs: _s, ...rest } = this.#definition
    const [first] = Object.keys(rest)
    if (first !== undefined)
      throw optionInvalid(
        `guard.${first} is for http: a ${this.#tunnel.kind} tunnel has allow, deny, rate and ttl.`,
      )
  }

  async #waysOf({
    password,
    bearer,
    bearerHeader,
    jwt,
    links,
    login,
    certificate,
  }: WaysDefinition): Promise<readonly Way[]> {
    const { name } = this.#tunnel
    const ways: Way[] = []
    if (certificate !== undefined) ways.push(new ClientCertificate(certificate))
    if (bearer !== undefined) ways.push(new Bearer(bearer, name, bearerHeader))
    if (jwt !== undefined) ways.push(new Jwt(jwt, this.#listed(this.#keys, jwt.issuer, 'tokens'), name))
    if (links) ways.push(new Links(this.#definition.key, this.#book))
    // Before the login, because the password's page also offers the login.
    if (password !== undefined) ways.push(new Password(password, name, this.#turns, this.#book))
    if (login !== undefined) {
      const client = this.#listed(this.#clients, login.issuer, 'logins')
      await LoginClient.load()
      ways.push(new Login(login, client, this.#definition.key))
    }
    return ways
  }

  #listed<Kind>(all: ReadonlyMap<string, Kind>, issuer: string, what: string): Kind {
    const found = all.get(issuer)
    if (found !== undefined) return found
    const text = `The server has not been set up for ${what} of ${issuer.slice(0, 200)}.`
    throw new TunnelError('GUARD_UNAVAILABLE', text)
  }
}

const OPEN: Rule = { ways: [] }

/** An access rule: no visitor passes after this time. */
class Expiry implements Guard {
  readonly name = 'ttl'
  readonly #endsAt: number

  constructor(leftMs: number) {
    this.#endsAt = performance.now() + leftMs
  }

  admit(): Refusal | undefined {
    return performance.now() < this.#endsAt ? undefined : { code: 'TUNNEL_EXPIRED' }
  }
}

function linesOf(headers: Readonly<Record<string, string>> = {}): readonly HeaderLine[] {
  return Object.entries(headers)
}

export class Bearer implements Way {
  readonly kind = 'bearer'
  readonly mark: string
  /** The scheme of the challenge. `undefined` for another header, for which HTTP has no scheme. */
  readonly challenge?: string
  readonly #header: string | undefined
  readonly #entry: Recognised
  readonly #hashes: readonly Buffer[]

  /** Makes the sign-in method. `hashes`: SHA-256, base64url. `header`: in lower case. */
  constructor(hashes: readonly string[], realm: string, header?: string) {
    this.#header = header
    this.#entry = { used: [header ?? 'authorization'] }
    this.#hashes = hashes.map(hash => Buffer.from(hash, 'base64url'))
    this.mark = sha256([...hashes, ...(header === undefined ? [] : [header])].join(' '))
      .toString('base64url')
      .slice(0, 12)
    if (header === undefined) this.challenge = `Bearer realm="${realm}"`
  }

  recognise(visitor: Request): Recognised {
    const token =
      this.#header === undefined ? credentialsOf(visitor, 'bearer') : visitor.head.header(this.#header)
    if (token === undefined) return undefined
    const hash = sha256(token)
    let isKnown = false
    // Compares all of them, so that the time does not show which one matched.
    for (const one of this.#hashes)
      if (one.length === hash.length && timingSafeEqual(one, hash)) isKnown = true
    return isKnown ? this.#entry : DENIED
  }
}

const DENIED = { denied: refusedWithJson('CREDENTIALS_REFUSED') }
