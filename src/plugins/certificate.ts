// A sign-in method: certificates that visitors show in TLS, signed by authorities that the tunnel's owner trusts.

import { createHash, X509Certificate } from 'node:crypto'
import { optionInvalid, type TunnelError } from '../errors.ts'
import type { CertificateRule } from '../guard.ts'
import { asciiLowerCase } from '../http/characters.ts'
import type { VisitorCertificate } from '../plugin.ts'
import type { Entry, Recognised, Request, Way } from './way.ts'

/** The maximum number of authorities of one guard. If exceeded: `OPTION_INVALID`. */
const MAX_AUTHORITIES = 20

export class ClientCertificate implements Way {
  readonly kind = 'certificate'
  readonly mark: string
  readonly #rule: CertificateRule
  /** The results for certificates on open connections, each of which is checked once. */
  readonly #known = new WeakMap<VisitorCertificate, Entry | 'refused'>()

  /** Makes the sign-in method. Throws `OPTION_INVALID`. */
  constructor(rule: CertificateRule) {
    checkAuthorities(rule.ca)
    this.#rule = { ...rule, ...(rule.fingerprints && { fingerprints: rule.fingerprints.map(plainHex) }) }
    this.mark = createHash('sha256').update(JSON.stringify(rule)).digest('base64url').slice(0, 12)
  }

  recognise({ asked }: Request): Recognised {
    const certificate = asked?.clientCa === this.#rule.ca ? asked.certificate : undefined
    if (certificate === undefined) return undefined
    let known = this.#known.get(certificate)
    if (known === undefined) {
      known = this.#judge(certificate)
      this.#known.set(certificate, known)
    }
    // A connection may outlive its certificate.
    return known === 'refused' || (known.endsAt ?? 0) <= Date.now() ? undefined : known
  }

  /** Whether this connection was not asked for a certificate, and another one would be. */
  isMisdirected({ asked }: Request): boolean {
    return asked?.clientCa !== this.#rule.ca
  }

  #judge(certificate: VisitorCertificate): Entry | 'refused' {
    const { names, subject = {}, fingerprints } = this.#rule
    const fields = subjectOf(certificate)
    const own = namesOf(certificate, fields)
    const fits =
      (names === undefined || own.some(name => names.some(pattern => isMatch(name, pattern)))) &&
      Object.entries(subject).every(([field, value]) => fields.get(field)?.includes(value) === true) &&
      (fingerprints === undefined || fingerprints.includes(plainHex(certificate.fingerprint256)))
    if (!fits) return 'refused'
    const user = own.find(name => name.includes('@')) ?? fields.get('CN')?.[0]
    return { endsAt: Date.parse(certificate.validTo), ...(user !== undefined && { user }) }
  }
}

/** Returns the fields of the subject, such as `CN` and `OU`, each with its values. */
function subjectOf({ subject }: VisitorCertificate): ReadonlyMap<string, readonly string[]> {
  const fields = new Map<string, string[]>()
  for (const line of subject.split('\n')) {
    const [, field = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
    fields.set(field, [...(fields.get(field) ?? []), value])
  }
  return fields
}

/** Returns the common name, DNS names and e-mail addresses. A quoted one contains characters that are invalid in names. */
function namesOf(
  { subjectAltName = '' }: VisitorCertificate,
  fields: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const others = subjectAltName
    .split(', ')
    .flatMap(entry => /^(?:DNS|email):([^"\s]+)$/.exec(entry)?.[1] ?? [])
  return [...(fields.get('CN') ?? []), ...others]
}

/** Whether a name matches. `*` at the beginning of a pattern stands for at least one character. */
function isMatch(name: string, pattern: string): boolean {
  const [own, wanted] = [asciiLowerCase(name), asciiLowerCase(pattern)]
  if (!wanted.startsWith('*')) return own === wanted
  return own.length >= wanted.length && own.endsWith(wanted.slice(1))
}

const plainHex = (fingerprint: string): string => fingerprint.replaceAll(':', '').toLowerCase()

function checkAuthorities(pem: string): void {
  const all = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
  if (all.length === 0 || all.length > MAX_AUTHORITIES)
    throw invalid(`must have 1 to ${MAX_AUTHORITIES} certificates in PEM format, and has ${all.length}`)
  for (const one of all)
    try {
      new X509Certificate(one)
    } catch (cause) {
      throw invalid('has something that is no certificate', cause)
    }
}

function invalid(what: string, cause?: unknown): TunnelError {
  return optionInvalid(`guard: certificate.ca ${what}.`, { cause })
}
