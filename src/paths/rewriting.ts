// Translates host names and path prefixes between an app and its visitors, in headers and in the request path. Bodies
// are never changed.

import { optionInvalid } from '../errors.ts'
import { isRoutePath } from '../wire/control.ts'
import { staysBelow } from './path-readings.ts'

/** The headers that can be translated: `location` has Content-Location too, `cookies` Domain and Path of Set-Cookie. */
export const REWRITABLE = ['location', 'cookies', 'referer', 'origin', 'destination'] as const

/** The names that an app uses for itself. */
export interface RewriteTerms {
  /** The scheme and host at which the client reaches the app. */
  readonly app: string
  /** The Host header that the app gets. Default: the visitor's. */
  readonly hostHeader?: string
  /** The names of `REWRITABLE` headers to translate. Other names are ignored. */
  readonly headers: readonly string[]
  /** The path that visitors' URLs have before the app's paths. Default none. */
  readonly stripPrefix?: string
  /** The path that the app's URLs have before the visitors' paths. Default none. */
  readonly addPrefix?: string
}

const MAX_HEADERS = 16

/** Whether a client's terms can be used. Names of headers that a newer client knows are among them. */
export function isRewriteTerms(value: unknown): value is RewriteTerms {
  if (typeof value !== 'object' || value === null) return false
  const { app, hostHeader, headers, stripPrefix, addPrefix }: Partial<Record<string, unknown>> = { ...value }
  const isText = (text: unknown): text is string =>
    typeof text === 'string' && /^[\x21-\x7e]{1,255}$/.test(text)
  return (
    isText(app) &&
    app.includes('://') &&
    (hostHeader === undefined || isText(hostHeader)) &&
    Array.isArray(headers) &&
    headers.length <= MAX_HEADERS &&
    headers.every(isText) &&
    [stripPrefix, addPrefix].every(path => path === undefined || isRoutePath(path))
  )
}

/** Returns the path of an option without slashes at its end; `undefined` if it names none. Throws `OPTION_INVALID`. */
export function prefixOf(name: string, given: string | undefined): string | undefined {
  const path = given?.replace(/\/+$/, '')
  if (path === undefined || path === '') return undefined
  if (isRoutePath(path) && !/\/\.\.?(?:\/|$)/.test(path)) return path
  throw optionInvalid(`${name}: "${given}" is not a path such as /app.`)
}

interface HostName {
  readonly name: string
  /** The port. Empty for any. */
  readonly port: string
}

/** The translated headers in lower case, each with the name of its group. */
const HEADERS: Readonly<Record<string, (typeof REWRITABLE)[number]>> = {
  location: 'location',
  'content-location': 'location',
  'set-cookie': 'cookies',
  referer: 'referer',
  origin: 'origin',
  destination: 'destination',
}

/** Splits a URL into scheme, authority and rest. The scheme may be missing. */
const URL_PARTS = /^(https?:)?\/\/([^/?#\\]*)(.*)$/is

export class Rewriting {
  readonly #headers: ReadonlySet<string>
  readonly #strip: string
  readonly #add: string
  /** The scheme and host for the app in place of the visitors'. `undefined` if the app knows theirs. */
  readonly #origin: string | undefined
  readonly #names: readonly HostName[]

  constructor({ app, hostHeader, headers, stripPrefix = '', addPrefix = '' }: RewriteTerms) {
    const [, scheme = 'http:', authority = ''] = URL_PARTS.exec(app) ?? []
    const own = hostOf(authority)
    const isHere = own.name === LOOPBACK
    const port = own.port || (isHere ? '' : scheme === 'https:' ? '443' : '80')
    this.#headers = new Set(headers)
    this.#strip = stripPrefix
    this.#add = addPrefix
    this.#origin = hostHeader === undefined ? undefined : `${scheme}//${hostHeader}`
    this.#names = [{ name: own.name, port }, ...(hostHeader === undefined ? [] : [hostOf(hostHeader)])]
  }

  /**
   * Returns the path and query for the app. `undefined` if the path is not below the removed prefix, or if an app
   * could read the result as not below the added prefix: rules for visitors' paths would not hold for it.
   */
  target(path: string): string | undefined {
    if (!path.startsWith('/') || this.#strip + this.#add === '') return path
    const own = below(this.#strip, path)
    return own !== undefined && staysBelow(own.replace(/[?#].*$/s, ''), this.#add === '')
      ? this.#add + own
      : undefined
  }

  /** Returns the value of a request header for the app. `name` is lower-case; `host` is the visitor's, with its port. */
  requestValue(name: string, value: string, host: string): string {
    if (!this.#rewrites(name)) return value
    const [, scheme, authority = '', rest = ''] = URL_PARTS.exec(value) ?? []
    if (scheme === undefined)
      return name === 'destination' && isPath(value)
        ? this.#placed(this.target(value) ?? value, value)
        : value
    if (plain(authority, scheme) !== plain(host, scheme)) return value
    const path = name === 'origin' ? rest : (this.target(rest) ?? rest)
    return (this.#origin ?? `${scheme}//${authority}`) + path
  }

  /** Returns the value of a response header for the visitor. `origin`: scheme and host of the visitor's request. */
  responseValue(name: string, value: string, origin: string): string {
    if (!this.#rewrites(name)) return value
    return name === 'set-cookie' ? this.#cookie(value) : this.#location(value, origin)
  }

  #rewrites(name: string): boolean {
    const header = Object.hasOwn(HEADERS, name) ? HEADERS[name] : undefined
    return header !== undefined && this.#headers.has(header)
  }

  #location(value: string, origin: string): string {
    if (isPath(value)) return this.#placed(this.#toVisitor(value), value, origin)
    const [, scheme = '', authority = '', rest = ''] = URL_PARTS.exec(value) ?? []
    if (authority === '') return value
    const [, ownScheme = '', ownHost = ''] = URL_PARTS.exec(origin) ?? []
    const isPublic = plain(authority, scheme || ownScheme) === plain(ownHost, scheme || ownScheme)
    if (!isPublic && !this.#isApps(authority)) return value
    const place = isPublic ? `${scheme}//${authority}` : scheme === '' ? `//${ownHost}` : origin
    return place + (this.#strip + this.#add === '' ? rest : this.#toVisitor(rest.replace(/^(?!\/)/, '/')))
  }

  /**
   * Adds the `origin` to a path that would name another host, because it begins with two slashes after the change.
   * Without an `origin`, leaves the path unchanged.
   */
  #placed(path: string, before: string, origin?: string): string {
    if (isPath(path)) return path
    return origin === undefined ? before : origin + path
  }

  #cookie(value: string): string {
    const [pair = '', ...attributes] = value.split(';')
    // Browsers accept a cookie with this prefix only for the path `/`.
    const isRooted = /^\s*__host-/i.test(pair)
    const changed = attributes.flatMap(attribute => {
      const at = attribute.indexOf('=')
      const name = (at < 0 ? attribute : attribute.slice(0, at)).trim().toLowerCase()
      const text = at < 0 ? '' : attribute.slice(at + 1).trim()
      // A cookie without a domain is for the visitor's host only.
      if (name === 'domain' && this.#isAppsDomain(text)) return []
      if (name !== 'path' || isRooted || !text.startsWith('/')) return [attribute]
      const path = this.#toVisitor(text)
      // A path that ends with a slash would exclude the path without it.
      const isLonger = path.length > 1 && (text === '/' || !text.endsWith('/'))
      return path === text ? [attribute] : [` Path=${isLonger ? path.replace(/\/$/, '') : path}`]
    })
    return [pair, ...changed].join(';')
  }

  #toVisitor(path: string): string {
    const inner = below(this.#add, path)
    if (inner === undefined) return path
    // An app that knows its visitors' path has added it itself.
    return below(this.#strip, inner) === undefined ? this.#strip + inner : inner
  }

  #isApps(authority: string): boolean {
    const { name, port } = hostOf(authority)
    return this.#names.some(one => one.name === name && (port === '' || one.port === '' || one.port === port))
  }

  #isAppsDomain(text: string): boolean {
    const { name } = hostOf(text.replace(/^\./, ''))
    return name !== '' && this.#names.some(one => one.name === name || one.name.endsWith(`.${name}`))
  }
}

const LOOPBACK = 'localhost'

/** Returns the host for comparison. All names of this machine count as one. */
function hostOf(authority: string): HostName {
  const lower = authority.toLowerCase()
  const colon = lower.lastIndexOf(':')
  const hasPort = colon > lower.lastIndexOf(']')
  const name = hasPort ? lower.slice(0, colon) : lower
  const isHere = name === '127.0.0.1' || name === '[::1]'
  return { name: isHere ? LOOPBACK : name, port: hasPort ? lower.slice(colon + 1) : '' }
}

/** Removes the port if it is the default of the scheme. */
function plain(authority: string, scheme: string): string {
  return authority.toLowerCase().replace(scheme.toLowerCase() === 'https:' ? /:443$/ : /:80$/, '')
}

/** Whether the text is a path, rather than a host as in `//other.example` and `/\other.example`. */
function isPath(text: string): boolean {
  // Browsers remove tabs and line ends before they read it.
  return /^\/(?![\t\r\n]*[/\\])/.test(text)
}

/** Returns the path without the prefix. `undefined` if the path is not below it. */
function below(prefix: string, path: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  if (rest === '' || rest.startsWith('?') || rest.startsWith('#')) return `/${rest}`
  return rest.startsWith('/') ? rest : undefined
}
