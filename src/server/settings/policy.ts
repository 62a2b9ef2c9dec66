// The server's tokens, and the rights of each.

import { createHash, timingSafeEqual } from 'node:crypto'
import { type ErrorCode, optionInvalid } from '../../errors.ts'
import { type Allowance, isAllowance } from '../../gcra.ts'
import type { TokenFault, TokenIdentity, TokenReader } from '../../tokens.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import type { TokenRule } from './options.ts'
import { NamePattern } from './plugins-for.ts'
import { PortRanges } from './ports.ts'

const KINDS: readonly GrantedKind[] = ['http', 'tcp', 'udp', 'tls', 'private']

/** The names that belong to one token only: name → `id` of its rule. */
type Reserved = ReadonlyMap<string, string>
const NONE_RESERVED: Reserved = new Map()

/** The rights of one token, or of clients without one. */
export class Rule {
  /** The id of the token in counters, which reveals nothing about the secret. `undefined` if the server has no such token. */
  readonly id: string | undefined
  readonly name: string | undefined
  /** The number of tunnels that all clients of the token may have. `undefined`: the server's limit. */
  readonly maxTunnels: number | undefined
  readonly maxPorts: number | undefined
  readonly maxClients: number | undefined
  readonly maxHosts: number | undefined
  /** The request rate of the visitors of all its tunnels together. */
  readonly rate: Allowance | undefined
  /** The bandwidth of all its tunnels together, in bytes per second in each direction. */
  readonly bandwidth: number | undefined
  /** Whether tunnels without a guard are refused. */
  readonly requiresGuard: boolean
  readonly #hash: Buffer | undefined
  readonly #identity: TokenIdentity | undefined
  readonly #reserved: Reserved
  readonly #names: readonly NamePattern[] | undefined
  readonly #kinds: readonly GrantedKind[] | undefined
  readonly #hosts: readonly NamePattern[]
  /** The private services that it may connect to. */
  readonly #connect: readonly NamePattern[]
  readonly #ports: { readonly tcp: PortRanges | undefined; readonly udp: PortRanges | undefined }

  /** Makes a rule. `hash` is that of the shown token; `isKnown`: whether the server has this token. */
  constructor(
    rule: Omit<TokenRule, 'token' | 'tokenHash'>,
    hash: Buffer | undefined,
    isKnown = false,
    reserved: Reserved = NONE_RESERVED,
    identity?: TokenIdentity,
  ) {
    this.#identity = identity
    const { names, kinds, tcpPorts, udpPorts, hosts = [], connect = [] } = rule
    this.#hash = hash
    this.name = rule.name
    this.#reserved = reserved
    this.id = isKnown ? hash?.toString('base64') : undefined
    this.#names = names?.map(text => new NamePattern(text, 'tokens.names'))
    this.#kinds = kinds ?? kindsOf(rule)
    this.#hosts = hosts.map(text => new NamePattern(text, 'tokens.hosts', true))
    this.#connect = connect.map(text => new NamePattern(text, 'tokens.connect'))
    this.#ports = {
      tcp: tcpPorts === undefined ? undefined : new PortRanges(tcpPorts, 'tokens.tcpPorts'),
      udp: udpPorts === undefined ? undefined : new PortRanges(udpPorts, 'tokens.udpPorts'),
    }
    this.maxTunnels = rule.maxTunnels
    this.maxPorts = rule.maxPorts
    this.maxClients = rule.maxClients
    this.maxHosts = rule.maxHosts
    this.rate = rule.rate
    this.bandwidth = rule.bandwidth
    this.requiresGuard = rule.requireGuard ?? false
  }

  /** The time when the token expires, in milliseconds since 1970. `undefined` if it does not expire. */
  get endsAtMs(): number | undefined {
    return this.#identity?.endsAtMs
  }

  /** The code for a token that is no longer valid. */
  get endCode(): 'TOKEN_EXPIRED' | 'TOKEN_REFUSED' {
    return (this.endsAtMs ?? Number.POSITIVE_INFINITY) <= Date.now() ? 'TOKEN_EXPIRED' : 'TOKEN_REFUSED'
  }

  isOpenedBy(hash: Buffer): boolean {
    return this.#hash !== undefined && timingSafeEqual(this.#hash, hash)
  }

  /** Returns the rule of the same token in another policy. `undefined` if there is none. */
  in(policy: Policy): Rule | undefined {
    return this.#identity === undefined
      ? policy.ruleOfHash(this.#hash)
      : policy.ruleOfIdentity(this.#identity)
  }

  /** Returns why a tunnel of this kind and name is refused to the token. `undefined` if it is allowed. */
  refusal(kind: GrantedKind, name: string | undefined): ErrorCode | undefined {
    if (this.#kinds !== undefined && !this.#kinds.includes(kind)) return 'NOT_ALLOWED'
    if (name === undefined) return undefined
    const owner = this.#reserved.get(name)
    if (owner !== undefined && owner !== this.id) return 'NAME_RESERVED'
    if (this.#names === undefined) return undefined
    return this.#names.some(one => one.fits(name)) ? undefined : 'NOT_ALLOWED'
  }

  /** Whether the token only connects to private services, and opens no tunnels. */
  get onlyConnects(): boolean {
    return this.#kinds?.length === 0 && this.#connect.length > 0
  }

  /** Whether the token may have custom domains. */
  get opensHosts(): boolean {
    return this.#hosts.length > 0
  }

  allowsHost(host: string): boolean {
    return this.#hosts.some(one => one.fits(host))
  }

  allowsConnect(name: string): boolean {
    return this.#connect.some(one => one.fits(name))
  }

  allowsPort(kind: 'tcp' | 'udp', port: number): boolean {
    return this.#ports[kind]?.includes(port) ?? true
  }

  /** The ports that the token may have. `undefined`: all of the server's. */
  portsOf(kind: 'tcp' | 'udp'): PortRanges | undefined {
    return this.#ports[kind]
  }
}

/**
 * Returns the kinds for a rule that names none. A list of names is meant to be complete, and ports have no names, so such a rule
 * opens ports only if it also lists them. A rule with `connect` and without names is for private services only.
 */
function kindsOf({
  names,
  connect,
  tcpPorts,
  udpPorts,
}: Omit<TokenRule, 'token' | 'tokenHash'>): GrantedKind[] | undefined {
  if (names === undefined && connect === undefined) return undefined
  const kinds: GrantedKind[] = names === undefined ? [] : ['http', 'tls', 'private']
  if (tcpPorts !== undefined) kinds.push('tcp')
  if (udpPorts !== undefined) kinds.push('udp')
  return kinds
}

/**
 * The rights of every client on a server without tokens. They exclude custom domains, which are for clients that the
 * operator knows.
 */
export const ANYTHING: Rule = new Rule({}, undefined)

export const ANYTHING_WITH_HOSTS: Rule = new Rule({ hosts: ['*'] }, undefined)

export interface RevokedTokens {
  /** Whether a token is revoked. `hash`: its SHA-256, in hexadecimal. */
  isRevoked(hash: string): boolean
}

export class Policy {
  /** The tokens that other servers have revoked. `undefined` if there are no others. */
  revocations: RevokedTokens | undefined
  readonly #rules: readonly Rule[]
  readonly #reserved: Reserved
  readonly #reader: TokenReader | undefined

  /** Makes a policy. Throws `OPTION_INVALID` for tokens and rules that cannot be used. */
  constructor(tokens: readonly (string | TokenRule)[], reader?: TokenReader) {
    this.#reader = reader
    for (const scope of reader?.scopes ?? []) {
      checkRule(scope)
      void new Rule(scope, undefined)
    }
    const seen = new Set<string>()
    const reserved = new Map<string, string>()
    this.#rules = tokens.map(one => {
      // A token given as a text alone may have any custom domain; a rule lists them.
      const rule: TokenRule =
        typeof one === 'string' ? { token: one, hosts: ['*'], connect: ['*'], kinds: KINDS } : one
      const hash = hashOf(rule)
      checkRule(rule)
      const id = hash.toString('base64')
      if (seen.has(id)) throw optionInvalid('Two of the tokens are the same: which rule is meant?')
      seen.add(id)
      if (rule.reserve) reserve(reserved, rule, id)
      return new Rule(rule, hash, true, reserved)
    })
    this.#reserved = reserved
  }

  /** Whether there are no tokens, so that every client may have tunnels. */
  get isOpen(): boolean {
    return this.#rules.length === 0 && this.#reader === undefined
  }

  /** Whether any token may have custom domains. */
  get opensHosts(): boolean {
    const ofIssuers = this.#reader?.scopes.some(({ hosts = [] }) => hosts.length > 0)
    return ofIssuers === true || this.#rules.some(rule => rule.opensHosts)
  }

  /** Returns a check for a token of an issuer. `undefined` if no issuer made it, or the server itself has it. */
  readingOf(token: string | undefined, address: string): (() => Promise<Rule | TokenFault>) | undefined {
    const reader = this.#reader
    if (reader === undefined || token === undefined || !reader.fits(token)) return undefined
    if (this.ruleOf(token) !== undefined) return undefined
    return async () => {
      const identity = await reader.read(token, address)
      return typeof identity === 'string' ? identity : (this.ruleOfIdentity(identity) ?? 'TOKEN_REFUSED')
    }
  }

  /** Returns the rule for a verified token of an issuer. `undefined` if it has no rights, or they have ended. */
  ruleOfIdentity(identity: TokenIdentity): Rule | undefined {
    if (this.isOpen) return new Rule({}, undefined, false, NONE_RESERVED, identity)
    if (identity.endsAtMs <= Date.now()) return undefined
    const read = this.#reader?.scopeOf(identity)
    if (read === undefined) return undefined
    const { id, name, scope } = read
    return new Rule({ ...scope, name }, sha256(id), true, this.#reserved, identity)
  }

  /**
   * Whether the token with this `Rule.id` may have the name, for a client that is away. A token of an issuer is known
   * only while it is shown, so for it only reservations count.
   */
  mayHave(id: string, name: string): boolean {
    const rule = this.ruleOfHash(Buffer.from(id, 'base64'))
    if (rule !== undefined) return rule.refusal('http', name) === undefined
    return this.#reader !== undefined && [undefined, id].includes(this.#reserved.get(name))
  }

  ruleOf(token: string | undefined): Rule | undefined {
    return this.ruleOfHash(token === undefined ? undefined : sha256(token))
  }

  ruleOfHash(hash: Buffer | undefined): Rule | undefined {
    // A server without tokens still remembers a shown token, because it may need it after a reload.
    if (this.isOpen) return hash === undefined ? ANYTHING : new Rule({}, hash)
    if (hash === undefined) return undefined
    let found: Rule | undefined
    // Compares all of them, so that the time does not show which one matched.
    for (const rule of this.#rules) if (rule.isOpenedBy(hash)) found ??= rule
    if (found !== undefined && this.revocations?.isRevoked(hash.toString('hex'))) return undefined
    return found
  }
}

/** Returns the hash of a token. Throws `OPTION_INVALID`. */
function hashOf({ token, tokenHash }: TokenRule): Buffer {
  if ((token === undefined) === (tokenHash === undefined))
    throw optionInvalid('A rule of tokens has either token or tokenHash.')
  if (token !== undefined) return sha256(token)
  if (tokenHash !== undefined && /^[0-9a-f]{64}$/i.test(tokenHash)) return Buffer.from(tokenHash, 'hex')
  throw optionInvalid('tokens.tokenHash is a SHA-256: 64 hexadecimal digits.')
}

function reserve(reserved: Map<string, string>, { names = [] }: TokenRule, id: string): void {
  const own = names.filter(name => !name.includes('*'))
  if (own.length === 0) throw optionInvalid('tokens.reserve needs names without a *: which are to be kept?')
  for (const name of own) {
    if (reserved.has(name)) throw optionInvalid(`Two of the tokens reserve the name ${name}.`)
    reserved.set(name, id)
  }
}

function checkRule({ token, names, kinds, hosts, connect, rate, bandwidth, ...rule }: TokenRule): void {
  // A header could not carry other characters, and no client sends more than 255.
  if (token !== undefined && !/^[\x21-\x7e]{1,255}$/.test(token))
    throw optionInvalid('A token must be 1 to 255 characters of visible ASCII, without spaces.')
  // One reader would take an empty list for "all", another one for "none".
  if (names?.length === 0 || kinds?.length === 0)
    throw optionInvalid('tokens.names and tokens.kinds are not empty: leave them out for all.')
  if (hosts?.length === 0) throw optionInvalid('tokens.hosts is not empty: leave it out for none.')
  if (connect?.length === 0) throw optionInvalid('tokens.connect is not empty: leave it out for none.')
  if (rate !== undefined && !isAllowance(rate))
    throw optionInvalid('tokens.rate needs a limit of 1 to 1,000,000 and a window of 1 s to 24 h.')
  if (bandwidth !== undefined && !isBandwidth(bandwidth))
    throw optionInvalid(`tokens.bandwidth must be at least 1,024 bytes a second, not ${bandwidth}.`)
  for (const kind of kinds ?? [])
    if (!KINDS.includes(kind))
      throw optionInvalid(`tokens.kinds: "${kind}" is none of http, tcp, udp, tls and private.`)
  for (const option of ['maxTunnels', 'maxPorts', 'maxClients', 'maxHosts'] as const) {
    const most = rule[option]
    // A token without tunnels or clients would open nothing. Without ports it just lacks those kinds.
    if (most !== undefined && !(Number.isInteger(most) && most >= 1))
      throw optionInvalid(`tokens.${option} must be at least 1, not ${most}.`)
  }
}

/** Whether a bandwidth is large enough: below this, a single packet would take more than a second. */
export const isBandwidth = (bytesPerSecond: number): boolean =>
  Number.isSafeInteger(bytesPerSecond) && bytesPerSecond >= 1_024

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
