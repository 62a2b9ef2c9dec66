// The small functions of the public API for names, hosts and ports. Some run for each request, so they are measured.

import { optionInvalid, type TunnelError } from './errors.ts'

/**
 * Returns a friendly name such as `calm-otter`, one of 16,384.
 *
 * Math.random is enough, because a name protects nothing: it is public, and the server decides who has it. Values
 * that protect something (resume secrets, ids) come from `generateId`.
 */
export function generateSubdomain(): string {
  const pick = (Math.random() * 16_384) | 0
  return `${ADJECTIVES[pick & 127]}-${NOUNS[pick >> 7]}`
}

const URL_SAFE = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
const POOL_CHARS = 1_024

// Characters made in advance, each returned once: one call of the system's generator is enough for 64 ids, and a slice of a flat
// string is several times faster than joining characters. An id that is stored keeps its pool of 1 KB in memory.
const bytes = new Uint8Array(POOL_CHARS)
const ascii = new TextDecoder()
let pool = ''
let used = 0

function refill(): void {
  crypto.getRandomValues(bytes)
  for (let index = 0; index < POOL_CHARS; index++) bytes[index] = URL_SAFE[bytes[index]! & 63]!
  pool = ascii.decode(bytes)
  bytes.fill(0)
  used = 0
}

/** Returns an unpredictable id of 1 to 1,024 URL-safe characters, 6 bits each: the default of 16 has 96 bits. */
export function generateId(length = 16): string {
  if (!Number.isInteger(length) || length < 1 || length > POOL_CHARS) {
    throw optionInvalid(`An id cannot have ${length} characters.`)
  }
  if (used + length > pool.length) refill()
  const id = pool.slice(used, used + length)
  used += length
  return id
}

// A compiled regular expression is three times as fast here as a loop over char codes.
const LABEL = /^(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Whether a name may be a tunnel's label: 1 to 63 of `a-z`, `0-9` and `-`, with a letter or digit at both ends.
 * `xn--…` is refused: browsers show such a label as other letters, which only helps imitation.
 */
export function isValidSubdomain(name: string): boolean {
  return LABEL.test(name)
}

/** Returns a hint, after a colon, what to write in place of a text that is not a domain name. Empty if there is none. */
export function domainHint(text: string): string {
  const [, scheme = '', star = '', name = '', rest = ''] = /^(\w+:\/\/)?(\*\.)?([^:/]*)(.*)$/.exec(text) ?? []
  if (!name.split('.').every(label => LABEL.test(label.toLowerCase())))
    return /[^\x20-\x7e]/.test(name) ? ': letters must be a-z here, so use another domain' : ''
  if (scheme !== '') return `: write ${name}, without ${scheme}`
  if (star !== '') return `: write ${name}, which has all hosts below it`
  return /^:\d+$/.test(rest) ? `: write ${name}, as the port has an option of its own` : ''
}

/** The labels that no client may take: the server's own, and those with a meaning for mail, browsers and certificates. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(
  `acme admin administrator api auth autoconfig autodiscover cdn control dashboard dns docs ftp health host hostmaster
  imap localhost login mail metrics mta-sts ns ns1 ns2 pop postmaster root security server smtp ssl static status
  support tunnel webmail webmaster wpad www`.split(/\s+/),
)

/** Whether the label is one of `RESERVED_NAMES`. */
export function isReservedName(name: string): boolean {
  return RESERVED_NAMES.has(name)
}

/** Whether the number is a valid port to dial: a whole number from 1 to 65535. */
export function isValidPort(port: number): boolean {
  return (port | 0) === port && port > 0 && port < 65_536
}

/** Returns the error for a text that is not a port. `given`: its option and value. */
export const noPort = (given: string, lowest: 0 | 1 = 1): TunnelError =>
  optionInvalid(`${given}: a port is a number from ${lowest} to 65535.`)

/** The parts of a host. */
export interface HostParts {
  /** The host name without port and without the brackets of an IPv6 address. */
  readonly hostname: string
  /** The port, 1 to 65535. `undefined` if there is none. */
  readonly port: number | undefined
}

// Excludes characters that would change the meaning of a URL with the host: spaces, controls, delimiters.
const HOST = /^[\w.\-\u00a1-\uffdc]{1,253}(?::\d{1,5})?$/
const ADDRESS = /^[0-9a-f:.]*:[0-9a-f:.]*(?:%[\w.-]+)?$/i

/**
 * Splits `example.com:8080`, `[::1]:80`, or a bare host (also a bare `::1`). Throws `OPTION_INVALID` for an invalid
 * host, or a port outside of 1 to 65535.
 */
export function parseHost(host: string): HostParts {
  if (!HOST.test(host)) return parseUnusualHost(host)
  const colon = host.indexOf(':')
  if (colon === -1) return { hostname: host, port: undefined }
  return { hostname: host.slice(0, colon), port: parsePort(host.slice(colon + 1)) }
}

/** Parses IPv6 addresses, and throws for everything that is invalid. The dial decides whether an address exists. */
function parseUnusualHost(host: string): HostParts {
  const url = `http://${host}`
  const more = URL.canParse(url) && !/^\w+:\/\//.test(host) ? unusedPart(new URL(url)) : undefined
  if (more !== undefined) {
    const rest = host.replace(/^.*@|[/?#].*$/g, '')
    throw optionInvalid(`The address has ${more}, and none is used: give ${rest}.`)
  }
  const [, bracketed, port] = /^\[(.*)\](?::(.*))?$/.exec(host) ?? []
  const address = bracketed ?? host
  if (ADDRESS.test(address) && address.includes(':', address.indexOf(':') + 1)) {
    return { hostname: address, port: port === undefined ? undefined : parsePort(port) }
  }
  const [, name, wrongPort] = /^([^:]*):([^:/]*)$/.exec(host) ?? []
  if (wrongPort !== undefined && HOST.test(name ?? '')) parsePort(wrongPort)
  throw optionInvalid(`"${host}" is not a host.`)
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (!isValidPort(port)) throw noPort(JSON.stringify(text))
  return port
}

/** Whether a host means this machine: `localhost` and names below it, 127.0.0.0/8, `::1` with or without brackets. */
export function isLoopback(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return /^(?:.*\.)?localhost$|^\[?::1\]?$/.test(name) || /^127(?:\.\d{1,3}){3}$/.test(name)
}

/** The parts of a URL. */
export interface UrlParts {
  /** Whether the scheme is `https` instead of `http`. Default `false`. */
  readonly secure?: boolean
  /** The label before the host name. Default none. */
  readonly subdomain?: string
  /** A name or an address; an IPv6 address without brackets. */
  readonly hostname: string
  /** The port. The URL leaves it out if it is the scheme's own (80 or 443). */
  readonly port?: number
}

/** Returns scheme, label, host and port as a URL without a path, such as `http://name.example:8080`. */
export function formatUrl(parts: UrlParts): string {
  const { secure = false, subdomain, hostname, port } = parts
  const scheme = secure ? 'https' : 'http'
  const host = hostname.includes(':') ? `[${hostname}]` : hostname
  const name = subdomain ? `${subdomain}.${host}` : host
  return port === undefined || port === (secure ? 443 : 80)
    ? `${scheme}://${name}`
    : `${scheme}://${name}:${port}`
}

/** Returns an app's name as a label: `My Shop (beta)` becomes `my-shop-beta`. Empty if no character can be kept. */
export function slugOf(appName: string): string {
  return appName
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 64)
    .replace(/^-|-$/g, '')
    .slice(0, 63)
    .replace(/-$/, '')
}

/**
 * Returns names to try if `name` is in use: `name-2`, `name-3`, then seven random ones, of which the last four are
 * less likely in use.
 */
export function* alternativeNames(name: string): Generator<string, void, undefined> {
  for (const suffix of ['-2', '-3']) yield name.slice(0, 63 - suffix.length).replace(/-+$/, '') + suffix
  for (let count = 0; count < 3; count++) yield generateSubdomain()
  for (let count = 0; count < 4; count++) yield `${generateSubdomain()}-${(Math.random() * 10_000) | 0}`
}

/** The options of `calculateBackoff`, in milliseconds. */
export interface BackoffOptions {
  /** The upper bound of the second attempt's delay; it doubles with each further attempt. Default 500 ms. */
  readonly baseMs?: number
  /** The upper bound of every delay. Default 5,000 ms, as `maxBackoffMs` of the client. */
  readonly maxMs?: number
  /** Returns a random number from 0 (included) to 1 (excluded). Default `Math.random`. */
  readonly random?: () => number
}

/**
 * Returns the pause before attempt number `attempt`, counted from 1. The first has none. Later pauses are random, between 0 and a
 * limit that doubles ("full jitter"), so that a thousand clients of one lost server do not return at the same moment.
 */
export function calculateBackoff(attempt: number, options: BackoffOptions = {}): number {
  if (!(attempt > 1)) return 0
  const { baseMs = 500, maxMs = 5_000, random = Math.random } = options
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** (attempt - 2)))
}

/**
 * Returns headers as a record with one string per lower-case name, as the JSON wire carries them. Repeats are joined
 * with `, `; of `Set-Cookie`, which cannot be joined, the last one stays. The record has no prototype, so a header
 * may be called `__proto__`.
 */
export function headersToRecord(
  headers: Headers | Iterable<readonly [string, string]>,
): Record<string, string> {
  const record: Record<string, string> = Object.create(null)
  if (headers instanceof Headers) {
    // Names are lower-case and repeats joined already. forEach makes no pair per header.
    headers.forEach((value, name) => {
      record[name] = value
    })
    return record
  }
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const earlier = record[key]
    record[key] = earlier === undefined || key === 'set-cookie' ? value : `${earlier}, ${value}`
  }
  return record
}

/** Returns a part of the URL that is not allowed in the address of a server or an app. `undefined` if there is none. */
export function unusedPart({ username, password, pathname, search, hash }: URL): string | undefined {
  if (username + password !== '') return 'a login'
  if (pathname !== '' && pathname !== '/') return 'a path'
  if (search !== '') return 'a query'
  return hash === '' ? undefined : 'a fragment'
}

const split = (words: string): readonly string[] => words.trim().split(/\s+/)

export const ADJECTIVES: readonly string[] = split(`
  able airy amber ample apt aqua azure bold brave breezy bright brisk bubbly calm candid caring cheery civic
  clear clever cobalt comfy coral cosmic cosy crisp curious dainty dapper daring dear deep deft dewy eager
  early easy elegant epic even fair fancy fast festive fine fleet fluffy fond frank free fresh gentle giddy
  glad gleaming golden good grand green handy happy hardy hearty honest humble icy ideal jade jaunty jolly
  jovial joyful keen kind large lasting light lilac lively loyal lucid lucky lunar mellow merry mighty mild
  misty modest neat nimble noble novel open patient peach placid plucky polite prime proud quick quiet rapid
  rare ready regal rosy royal rustic scenic serene shiny silent silver sleek smart smooth snowy snug solar
  steady sunny swift tidy true upbeat vivid
`)

export const NOUNS: readonly string[] = split(`
  acorn alder almond alpaca anchor apple apricot aspen aster badger bamboo basil bay beacon bear beaver bee
  birch bison breeze bridge brook canary canyon cedar cherry cliff cloud clover comet condor cove crane
  creek cricket cypress daisy dawn deer delta dolphin dove dune eagle egret elk elm ember falcon fern finch
  fjord forest fox garden gecko geyser glacier grove gull harbor hare hawk hazel heron hill hippo ibex ibis
  iris island ivy jaguar jasmine juniper kestrel kiwi koala lagoon lake lark leaf lemur lily llama lotus
  lynx magpie mango maple marsh meadow mesa mint moon moose moss nectar newt oak oasis ocean olive orchid
  oriole osprey otter owl panda pebble pelican penguin pine plum pond poppy prairie puffin quail rabbit rain
  raven reef river robin rose rowan sage
`)
