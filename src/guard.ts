// The guard of a tunnel as data: the owner's options, and the part of them that the server gets.

/** The sign-in methods of a tunnel. A visitor needs one of them; without any, everyone may visit. */
export interface SignInMethods {
  /**
   * A shared password, 6 to 256 characters: a page asks browsers for it, all other visitors send it with HTTP Basic and any
   * user name. It leaves the client as a scrypt hash. Default none.
   */
  readonly password?: string
  /** Tokens that machines send as `Authorization: Bearer`, 16 to 255 visible ASCII characters each. They are hashed as well. Default none. */
  readonly bearer?: string | readonly string[]
  /**
   * The header whose value is the token of `bearer`, such as `X-Api-Key`, for apps that use `Authorization` themselves. The app does not
   * get this header. Default: `Authorization: Bearer`.
   */
  readonly bearerHeader?: string
  /** Tokens of an issuer that the server's operator has listed. Default none. */
  readonly jwt?: JwtRule
  /** Whether signed links admit their holders, as `tunnel.link()` and `localtunnels link` make them. Default `false`. */
  readonly links?: boolean
  /** Accounts of an OpenID Connect issuer for which the server has a login. Default none. */
  readonly login?: LoginRule
  /**
   * Certificates that visitors show in TLS. For servers that end TLS themselves; others, and servers of a cluster, refuse the tunnel with
   * `GUARD_UNAVAILABLE`. All of one guard have the same `ca`. Default none.
   */
  readonly certificate?: CertificateRule
}

/** A rule for the certificates of visitors. Each part that is given must fit. */
export interface CertificateRule {
  /** The PEM text of the authorities that sign them, at most 20. A certificate that signs itself stands for itself. */
  readonly ca: string
  /**
   * The common names, DNS names or e-mail addresses; a `*` may stand for the beginning: `*@example.com`. Case does not matter.
   * Default: any.
   */
  readonly names?: readonly string[]
  /** Fields of the subject that must have these values, such as `{ OU: 'ops' }`. Default: any. */
  readonly subject?: Readonly<Record<string, string>>
  /** The SHA-256 fingerprints in hexadecimal, with or without colons. Default: any. */
  readonly fingerprints?: readonly string[]
}

/** A rule for signed webhooks. The client checks the signatures. */
export interface WebhookRule {
  /** The provider that signs them. `standard`: Standard Webhooks, as Svix and others do. */
  readonly provider: 'standard' | 'stripe' | 'github' | 'slack' | 'shopify'
  /** The secret, as the provider shows it. Several hold while one is replaced by another. It never leaves this machine. */
  readonly secret: string | readonly string[]
  /** The maximum age of a signature, also into the future, in seconds; `0`: any. Default 300, as the providers say. */
  readonly toleranceSeconds?: number
  /** Bytes of a body that are kept until it is checked; a longer one gets 413. Default 1 MiB. */
  readonly maxBodyBytes?: number
}

/** The sign-in methods of a path and all paths below it. */
export interface PathSignInMethods extends SignInMethods {
  /** Webhooks with a valid signature; others get 401. The path has no other sign-in method, and none below it has rules. Default none. */
  readonly webhook?: WebhookRule
}

export interface JwtRule {
  /** The issuer, as in the token's `iss`. */
  readonly issuer: string
  /** The audience, as in the token's `aud`. */
  readonly audience: string
  /** Claims that must have these values; `*` stands for any characters, and one value of a list is enough. Default: any. */
  readonly claims?: Readonly<Record<string, string>>
}

export interface LoginRule {
  /** The URL of the issuer, as the server has it. */
  readonly issuer: string
  /**
   * The verified e-mail addresses that may visit: `anna@example.com`, `*@example.com`. Default: every account of the issuer.
   */
  readonly emails?: readonly string[]
}

/** Requests that one address may make: on average `limit` in a window, all of them at once if need be. */
export interface RateRule {
  /** The number of requests, at least 1. */
  readonly limit: number
  /** Milliseconds, from 1,000 to 86,400,000. */
  readonly windowMs: number
}

/** The guard of a tunnel. Everything that cannot be used: `OPTION_INVALID`. */
export interface GuardOptions extends SignInMethods {
  /**
   * Addresses and CIDR ranges that may visit; `::/0` has no IPv4 ones. Countries of the server's file: `country:DE`, and `country:unknown` for
   * addresses that the file does not have; without a file `GUARD_UNAVAILABLE`. Default: all. All other visitors get 403
   * `ADDRESS_REFUSED`.
   */
  readonly allow?: readonly string[]
  /** Addresses, CIDR ranges and countries that may not, even if `allow` has them: with it at most 1,000. Default none. */
  readonly deny?: readonly string[]
  /**
   * The rate for each visitor address; IPv6 per /64. Requests, or connections of raw tunnels. Default none. If exceeded: 429
   * `RATE_LIMITED`.
   */
  readonly rate?: RateRule
  /**
   * The time from the client's start for which the tunnel may be visited. Milliseconds. Default: no end. After it: 410
   * `TUNNEL_EXPIRED`.
   */
  readonly ttlMs?: number
  /** Paths that need no sign-in method: `/health`, `/assets/*`. Case matters. Default none. */
  readonly open?: readonly string[]
  /** Other sign-in methods for paths and everything below them; the longest path wins. Default none. */
  readonly paths?: Readonly<Record<string, PathSignInMethods>>
  /**
   * Whether preflights of browsers (OPTIONS without a body) reach the app without a sign-in; the browser gets only the status
   * and `Access-Control-*` of the response. Pages of other sites see the codes of refusals. Default `false`: 401.
   */
  readonly cors?: boolean
  /** The header lines for the app, which replace the visitor's. Default none. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  /** The header lines that the server adds to responses. Default none. */
  readonly responseHeaders?: Readonly<Record<string, string>>
  /** The time for which a browser stays signed in. Milliseconds. Default 43,200,000 (12 h). */
  readonly sessionMs?: number
  /**
   * Signs sessions and links: at least 32 characters. With the same one, both outlive the client, and the clients of a pool
   * have one guard. Default: made up by each client.
   */
  readonly secret?: string
}

/** The sign-in methods in the form for the server, without secrets that would open another server. */
export interface WaysDefinition {
  readonly password?: { readonly salt: string; readonly hash: string }
  /** The SHA-256 of each token, in base64url. */
  readonly bearer?: readonly string[]
  /** The name of the header in lower case. */
  readonly bearerHeader?: string
  readonly jwt?: JwtRule
  readonly links?: true
  readonly login?: LoginRule
  readonly certificate?: CertificateRule
}

/** A guard in the form for the wire. */
export interface GuardDefinition
  extends WaysDefinition,
    Pick<GuardOptions, 'allow' | 'deny' | 'rate' | 'open' | 'cors' | 'requestHeaders' | 'responseHeaders'> {
  readonly paths?: Readonly<Record<string, WaysDefinition>>
  readonly sessionMs: number
  /** The key that signs sessions and links. */
  readonly key: string
  /** The time left for visits, in milliseconds from now. */
  readonly leftMs?: number
  /** The ids of revoked links. */
  readonly revoked?: readonly string[]
}

export const DEFAULT_SESSION_MS = 43_200_000
/** The maximum number of revoked links of a tunnel. Each is forgotten when it would have expired. */
export const MAX_REVOKED = 1_000

/** The options of a link. */
export interface LinkOptions {
  /** The path of the link, which also opens all paths below it. Default `/`, everything. */
  readonly path?: string
  /** The time for which the link works. Milliseconds, at most 2,592,000,000 (30 days). Default 86,400,000 (a day). */
  readonly forMs?: number
  /**
   * Whether the link works once only. The visitor then presses a button first, because mail scanners follow links. Default
   * `false`.
   */
  readonly once?: boolean
}

export interface LinkContent {
  readonly id: string
  /** The name of the link's tunnel: another tunnel with the same secret does not accept it. Older clients leave it out. */
  readonly tunnel?: string
  readonly path: string
  /** The time when it expires, in seconds since 1970. */
  readonly exp: number
  readonly once?: true
}

/** The path below which a guarded tunnel's host belongs to the guard. */
export const GUARD_PATH = '/.localtunnels/'
export const LINK_PURPOSE = 'link'

/**
 * Returns a request target as events, logs and reports show it. A link is replaced by its id, because everyone who
 * reads it could use it. The query of a login is left out, because it contains the provider's code.
 */
export function shownTarget(target: string): string {
  const from = target.startsWith('/') ? 0 : target.indexOf('/', target.indexOf('//') + 2)
  if (!target.startsWith(GUARD_PATH, from)) return target
  const end = from + GUARD_PATH.length
  const [action = '', sealed] = (/^[^?#]*/.exec(target.slice(end))?.[0] ?? '').split('/')
  return target.slice(0, end) + action + (sealed === undefined ? '' : `/${idIn(sealed)}`)
}

/** Returns the id in a link, for searches in logs. It is not verified. */
function idIn(sealed: string): string {
  try {
    const { id }: Partial<LinkContent> = JSON.parse(
      Buffer.from(sealed.split('.', 1)[0] ?? '', 'base64url').toString(),
    )
    return typeof id === 'string' && /^[\w-]{1,32}$/.test(id) ? id : '...'
  } catch {
    // Not a link of this version.
    return '...'
  }
}
