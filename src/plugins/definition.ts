// Reads the guard that a client asks for. The client is not trusted: everything is checked, and unknown fields are refused.

import { optionInvalid, type TunnelError } from '../errors.ts'
import type { CertificateRule, GuardDefinition, JwtRule, LoginRule, WaysDefinition } from '../guard.ts'
import { MAX_REVOKED } from '../guard.ts'
import { dashedName } from '../http/edit-head.ts'

type Readers<Read> = { readonly [Name in keyof Read]-?: (given: unknown) => Read[Name] }

/**
 * Parses a definition. Throws `OPTION_INVALID`. An unknown field may be an access rule of a newer client, so it is
 * refused rather than ignored.
 */
export function parseDefinition(given: unknown): GuardDefinition {
  const fields = tableOf(given, 'guard')
  const { sessionMs, key } = fields
  return { ...read('', FIELDS, fields), sessionMs: FIELDS.sessionMs(sessionMs), key: FIELDS.key(key) }
}

function read<Read extends WaysDefinition>(where: string, readers: Readers<Read>, fields: Fields): Read {
  const read: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (!isKey(readers, name)) throw invalid(`${where}${name.slice(0, 64)} is not known here`)
    const result = value === undefined ? undefined : readers[name](value)
    if (result !== undefined) read[name] = result
  }
  if (read.bearerHeader !== undefined && read.bearer === undefined) throw invalid('bearerHeader needs bearer')
  // Each field is as its own reader returns it.
  return read as Read
}

const isKey = <Table extends object>(table: Table, name: string): name is keyof Table & string =>
  Object.hasOwn(table, name)

function passwordOf(given: unknown): { readonly salt: string; readonly hash: string } {
  const { salt, hash } = tableOf(given, 'password')
  if (!isText(salt, 255) || !isHash(hash)) throw invalid('password must be a salt and a hash')
  return { salt, hash }
}

function hashesOf(given: unknown): readonly string[] {
  const hashes = textsOf(given, 'bearer', 100)
  if (hashes.length === 0 || !hashes.every(isHash)) throw invalid('bearer must be a list of hashes')
  return hashes
}

function bearerHeaderOf(given: unknown): string {
  if (typeof given === 'string' && isSettable(given) && !/^cookie$/i.test(given)) return given.toLowerCase()
  throw invalid('bearerHeader must be the name of a header that guards may take')
}

function jwtOf(given: unknown): JwtRule {
  const { issuer, audience, claims } = tableOf(given, 'jwt')
  if (!isText(issuer, 1_024) || !isText(audience, 1_024)) throw invalid('jwt needs an issuer and an audience')
  return { issuer, audience, ...(claims !== undefined && { claims: recordOf(claims, 'jwt.claims') }) }
}

function recordOf(given: unknown, what: string): Readonly<Record<string, string>> {
  const record: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(tableOf(given, what))) {
    if (!isText(value, 1_024)) throw invalid(`${what} must be texts`)
    record[name] = value
  }
  return record
}

function certificateOf(given: unknown): CertificateRule {
  const { ca, names, subject, fingerprints, ...rest } = tableOf(given, 'certificate')
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) throw invalid(`certificate: ${unknown.slice(0, 64)} is not known here`)
  if (typeof ca !== 'string' || ca.length > MAX_CA_CHARS)
    throw invalid(`certificate.ca must be PEM of at most ${MAX_CA_CHARS} characters`)
  const rule = {
    ca,
    ...(names !== undefined && { names: textsOf(names, 'certificate.names', 1_000) }),
    ...(subject !== undefined && { subject: recordOf(subject, 'certificate.subject') }),
    ...(fingerprints !== undefined && {
      fingerprints: textsOf(fingerprints, 'certificate.fingerprints', 1_000),
    }),
  }
  // One reader could take an empty list for all visitors, and another one for none.
  if (rule.names?.length === 0 || rule.fingerprints?.length === 0)
    throw invalid('certificate.names and fingerprints must not be empty')
  if (rule.names?.some(name => name.lastIndexOf('*') > 0) === true)
    throw invalid('certificate.names may have a * at their beginning only')
  if (rule.fingerprints?.every(one => /^(?:[\da-f]{2}:?){32}$/i.test(one)) === false)
    throw invalid('certificate.fingerprints must be SHA-256 in hexadecimal')
  return rule
}

/** The size of 20 authorities with RSA keys of 4,096 bits as PEM. */
const MAX_CA_CHARS = 65_536

function loginOf(given: unknown): LoginRule {
  const { issuer, emails } = tableOf(given, 'login')
  if (!isText(issuer, 1_024)) throw invalid('login needs an issuer')
  if (emails === undefined) return { issuer }
  const rules = textsOf(emails, 'login.emails', 1_000)
  // One reader could take an empty list for all visitors, and another one for none.
  if (rules.length === 0 || !rules.every(one => /^(?:\*|[^\s@*]+)@[^\s@*]+$/.test(one)))
    throw invalid('login.emails must be addresses such as anna@example.com or *@example.com')
  return { issuer, emails: rules }
}

function rateOf(given: unknown): { readonly limit: number; readonly windowMs: number } {
  const { limit, windowMs } = tableOf(given, 'rate')
  return { limit: amountOf(limit, 'rate.limit', 1), windowMs: amountOf(windowMs, 'rate.windowMs', 1) }
}

function headersOf(given: unknown, where: string): Readonly<Record<string, string>> {
  const headers: Record<string, string> = Object.create(null)
  const lines = Object.entries(tableOf(given, where))
  if (lines.length > 32) throw invalid(`${where} has more than 32 lines`)
  for (const [name, value] of lines) {
    if (!isSettable(name) || !isHeaderValue(value))
      throw invalid(`${where}: ${name.slice(0, 64)} cannot be set`)
    headers[name] = value
  }
  return headers
}

/** The header names that framing, routing and this server's own lines depend on, in the form of `dashedName`. */
const FIXED =
  /^(?:host|content-length|transfer-encoding|connection|upgrade|expect|te|trailer|keep-alive|proxy-.*|forwarded|x-forwarded-.*|x-localtunnels-.*|set-cookie|date)$/
const isSettable = (name: string): boolean =>
  /^[\w!#$%&'*+.^`|~-]{1,128}$/.test(name) && !FIXED.test(dashedName(name))
const isHeaderValue = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x20-\x7e]{0,1024}$/.test(value)

type Fields = Readonly<Record<string, unknown>>

function tableOf(given: unknown, what: string): Fields {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid(`${what} must be an object`)
  return Object.assign(Object.create(null), given)
}

function textsOf(given: unknown, what: string, most: number): readonly string[] {
  if (Array.isArray(given) && given.length <= most && given.every(one => isText(one, 1_024))) return given
  throw invalid(`${what} must be a list of at most ${most} texts`)
}

function flagOf(given: unknown, what: string): boolean {
  if (typeof given === 'boolean') return given
  throw invalid(`${what} must be true or false`)
}

function amountOf(given: unknown, what: string, least: number): number {
  if (typeof given === 'number' && Number.isSafeInteger(given) && given >= least) return given
  throw invalid(`${what} must be a whole number from ${least}`)
}

function pathsOf(given: unknown): Readonly<Record<string, WaysDefinition>> {
  const paths: Record<string, WaysDefinition> = Object.create(null)
  for (const [path, one] of Object.entries(tableOf(given, 'paths')))
    paths[path] = read('paths: ', WAYS, tableOf(one, 'paths'))
  return paths
}

function keyOf(given: unknown): string {
  if (isText(given, 255) && given.length >= 32) return given
  throw invalid('key must be a text of 32 to 255 characters')
}

const WAYS: Readers<WaysDefinition> = {
  password: passwordOf,
  bearer: hashesOf,
  bearerHeader: bearerHeaderOf,
  jwt: jwtOf,
  links: given => flagOf(given, 'links') || undefined,
  login: loginOf,
  certificate: certificateOf,
}

const FIELDS: Readers<GuardDefinition> = {
  ...WAYS,
  allow: given => textsOf(given, 'allow', 1_000),
  deny: given => textsOf(given, 'deny', 1_000),
  rate: rateOf,
  open: given => textsOf(given, 'open', 100),
  cors: given => flagOf(given, 'cors'),
  requestHeaders: given => headersOf(given, 'requestHeaders'),
  responseHeaders: given => headersOf(given, 'responseHeaders'),
  paths: pathsOf,
  sessionMs: given => amountOf(given, 'sessionMs', 1_000),
  key: keyOf,
  leftMs: given => amountOf(given, 'leftMs', 0),
  revoked: given => textsOf(given, 'revoked', MAX_REVOKED),
}

const isText = (value: unknown, most: number): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= most && !/\p{Cc}/u.test(value)
const isHash = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{43}$/.test(value)

function invalid(what: string): TunnelError {
  return optionInvalid(`guard: ${what}.`)
}
