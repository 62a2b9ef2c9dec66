// A guard in the form for servers: checked, with hashes in place of passwords, and with the key that signs its links.

import { createHash, randomBytes, scrypt } from 'node:crypto'
import { optionInvalid } from './errors.ts'
import {
  DEFAULT_SESSION_MS,
  GUARD_PATH,
  type GuardDefinition,
  type GuardOptions,
  LINK_PURPOSE,
  type LinkContent,
  type LinkOptions,
  MAX_REVOKED,
  type PathSignInMethods,
  type SignInMethods,
  type WaysDefinition,
} from './guard.ts'
import { checkNames, type Names, namesOf, whole } from './option-names.ts'
import { seal } from './seal.ts'

const MAX_LINK_MS = 2_592_000_000

/** Makes a link to the tunnel at `url`, and the id that revokes it. */
export function makeLink(
  url: string,
  key: string,
  { path = '/', forMs = 86_400_000, once = false }: LinkOptions = {},
): { readonly url: string; readonly id: string } {
  if (
    !/^\/[\x21\x22\x24-\x7e]{0,1023}$/.test(path) ||
    path.startsWith('//') ||
    /\/\.\.?(?:[/?]|$)/.test(path)
  )
    throw optionInvalid(`A link's path begins with one slash, and "${path}" is no path.`)
  if (!(Number.isSafeInteger(forMs) && forMs >= 1_000 && forMs <= MAX_LINK_MS))
    throw optionInvalid('A link works for a second to 30 days.')
  const id = randomBytes(9).toString('base64url')
  const [tunnel = ''] = new URL(url).hostname.split('.')
  const content: LinkContent = {
    id,
    tunnel,
    path,
    exp: Math.ceil((Date.now() + forMs) / 1_000),
    ...(once && { once }),
  }
  return { id, url: new URL(`${GUARD_PATH}link/${seal(key, LINK_PURPOSE, content)}`, url).href }
}

/**
 * The parameters of scrypt, Node's defaults: 16 MiB and about 40 ms of one core. OWASP's cheat sheet recommends five
 * times the work, but here the server does it for each guess of a stranger, and guesses are limited by address.
 */
const SCRYPT = { N: 16_384, r: 8, p: 1, maxmem: 67_108_864 } as const
const HASH_BYTES = 32

/** Returns the hash of a password with a salt, which is not a secret. */
export function hashPassword(password: string, salt: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, HASH_BYTES, SCRYPT, (error, hash) =>
      error ? reject(error) : resolve(hash),
    )
  })
}

export function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** A guard for servers. Its hashes are made once, so that sessions outlive a reconnect. */
export class OwnGuard {
  #key: string
  readonly #options: GuardOptions
  readonly #startedAt: number = Date.now()
  readonly #ways = new Map<SignInMethods, Promise<WaysDefinition>>()
  readonly #revoked = new Set<string>()

  /** Makes a guard. Throws `OPTION_INVALID`. */
  constructor(options: GuardOptions) {
    checkGuard(options)
    this.#options = options
    this.#key = options.secret === undefined ? randomBytes(32).toString('base64url') : options.secret
  }

  /** The key that signs links and sessions. */
  get key(): string {
    return this.#key
  }

  /** Takes the secret of an earlier run, unless the user set one, and its revoked links. Call it before the first use. */
  adopt(secret: string, revoked: readonly string[]): void {
    if (this.#options.secret === undefined) this.#key = secret
    for (const id of revoked) this.revoke(id)
  }

  /** The ids of revoked links, the oldest first. */
  get revoked(): readonly string[] {
    return [...this.#revoked]
  }

  get hasLinks(): boolean {
    return [this.#options, ...Object.values(this.#options.paths ?? {})].some(({ links }) => links === true)
  }

  /** Revokes a link with the next definition. */
  revoke(id: string): void {
    this.#revoked.add(id)
    // The oldest are the first to expire.
    for (const oldest of this.#revoked) {
      if (this.#revoked.size <= MAX_REVOKED) break
      this.#revoked.delete(oldest)
    }
  }

  /** Makes the definition for the server. `salt`: a text that only this tunnel has, such as its name. */
  async define(salt: string): Promise<GuardDefinition> {
    const { allow, deny, rate, open, cors, requestHeaders, responseHeaders, ttlMs, sessionMs } = this.#options
    const paths = await Promise.all(
      Object.entries(this.#options.paths ?? {}).map(async ([path, ways]) => [
        path,
        await this.#define(ways, salt),
      ]),
    )
    return {
      ...(await this.#define(this.#options, salt)),
      ...(allow && { allow }),
      ...(deny && { deny }),
      ...(rate && { rate: { limit: rate.limit, windowMs: rate.windowMs } }),
      ...(open && { open }),
      ...(cors && { cors }),
      ...(requestHeaders && { requestHeaders }),
      ...(responseHeaders && { responseHeaders }),
      ...(paths.length > 0 && { paths: Object.fromEntries(paths) }),
      ...(ttlMs !== undefined && { leftMs: Math.max(0, this.#startedAt + ttlMs - Date.now()) }),
      ...(this.#revoked.size > 0 && { revoked: [...this.#revoked] }),
      sessionMs: sessionMs ?? DEFAULT_SESSION_MS,
      key: this.key,
    }
  }

  #define(ways: SignInMethods, salt: string): Promise<WaysDefinition> {
    let defined = this.#ways.get(ways)
    if (defined === undefined) {
      defined = define(ways, `localtunnels ${salt}`)
      this.#ways.set(ways, defined)
    }
    return defined
  }
}

async function define(
  { password, bearer, bearerHeader, jwt, links, login, certificate }: SignInMethods,
  salt: string,
): Promise<WaysDefinition> {
  const hash = password === undefined ? undefined : await hashPassword(password, salt)
  return {
    ...(hash && { password: { salt, hash: hash.toString('base64url') } }),
    ...(bearer !== undefined && { bearer: listOf(bearer).map(token => sha256(token).toString('base64url')) }),
    ...(bearerHeader !== undefined && { bearerHeader: bearerHeader.toLowerCase() }),
    ...(jwt && { jwt }),
    ...(links && { links }),
    ...(login && { login }),
    ...(certificate && { certificate }),
  }
}

const listOf = (value: string | readonly string[]): readonly string[] =>
  typeof value === 'string' ? [value] : value

/**
 * Checks the options that the server cannot check, because it gets only hashes, and those of the client alone. The
 * server refuses other invalid ones.
 */
function checkGuard(options: GuardOptions): void {
  // An object without any rule would look like a guard without being one.
  if (Object.values(options).every(value => value === undefined))
    throw optionInvalid('guard is empty: it needs a wall or a way in.')
  const { secret, ttlMs } = options
  checkNames(options, OPTIONS, 'guard')
  checkWays(options)
  for (const [path, ways] of Object.entries(options.paths ?? {})) {
    checkNames(ways, PATH_OPTIONS, `guard.paths["${path}"]`)
    checkWays(ways)
    if (ways.webhook !== undefined) checkWebhook(path, ways, options)
  }
  if (secret !== undefined && !(typeof secret === 'string' && /^[\x21-\x7e]{32,255}$/.test(secret)))
    throw optionInvalid('guard.secret must be 32 to 255 characters of visible ASCII.')
  if (ttlMs !== undefined) whole('guard.ttlMs', ttlMs, 1)
}

const WAYS: Names<SignInMethods> = namesOf<SignInMethods>()(
  'password bearer bearerHeader jwt links login certificate',
)
const PATH_OPTIONS: Names<PathSignInMethods> = { ...WAYS, webhook: true }
const OPTIONS: Names<GuardOptions> = {
  ...WAYS,
  ...namesOf<Omit<GuardOptions, keyof SignInMethods>>()(
    'allow deny rate ttlMs open paths cors requestHeaders responseHeaders sessionMs secret',
  ),
}

/** Throws for rules that the server would apply to webhooks, which only the client checks. */
function checkWebhook(path: string, ways: PathSignInMethods, { open = [], paths = {} }: GuardOptions): void {
  if (Object.values(ways).filter(way => way !== undefined).length > 1)
    throw optionInvalid(`guard.paths["${path}"]: webhook is the only way in of its path.`)
  const prefix = `${path.replace(/\/+$/, '')}/`.toLowerCase()
  const below = [...Object.keys(paths), ...open].find(
    one => one !== path && `${one}/`.toLowerCase().startsWith(prefix),
  )
  if (below !== undefined)
    throw optionInvalid(`guard.paths["${path}"]: "${below}" is below webhooks, so it cannot have a rule.`)
}

function checkWays({ password, bearer, bearerHeader }: SignInMethods): void {
  if (bearerHeader !== undefined && bearer === undefined)
    throw optionInvalid('guard.bearerHeader needs guard.bearer.')
  if (
    password !== undefined &&
    !(typeof password === 'string' && password.length >= 6 && password.length <= 256)
  )
    throw optionInvalid('guard.password must be 6 to 256 characters long.')
  for (const token of bearer === undefined ? [] : listOf(bearer))
    if (!(typeof token === 'string' && /^[\x21-\x7e]{16,255}$/.test(token)))
      throw optionInvalid('guard.bearer must be 16 to 255 characters of visible ASCII.')
}
