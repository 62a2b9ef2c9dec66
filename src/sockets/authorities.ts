// The authorities by which certificates are verified: those of the runtime and of the system, as with curl and git.
// Loaded with the first TLS connection, because reading them takes a few milliseconds.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as tls from 'node:tls'

/** The functions that Bun and Node from 22.15 have, and that the types of Node 20 lack. */
interface Lists {
  readonly getCACertificates?: (this: void, kind: 'default' | 'system') => readonly string[]
}

/** The files of the authorities: Debian and most others; Red Hat; SUSE; Alpine and the BSDs. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

let usual: readonly string[] | undefined
let isMore = false

/**
 * Returns the PEM text of the authorities that a dial has to name. `undefined` if the runtime knows them all. `own`:
 * another authority to trust.
 */
export function authorities(own: string | undefined): string[] | undefined {
  usual ??= usualOnes()
  if (own !== undefined) return [...usual, own]
  return isMore ? [...usual] : undefined
}

function usualOnes(): readonly string[] {
  const { getCACertificates }: Lists = tls
  const known = getCACertificates?.('default') ?? tls.rootCertificates
  const all = new Set(known)
  for (const one of getCACertificates?.('system') ?? systemFiles(process.env)) all.add(one.trim())
  isMore = all.size > known.length
  return [...all]
}

/**
 * Returns the certificates of the files and folders that OpenSSL reads, and of NODE_EXTRA_CA_CERTS, which our list would
 * otherwise replace.
 */
function systemFiles(environment: NodeJS.ProcessEnv): readonly string[] {
  const { SSL_CERT_FILE, SSL_CERT_DIR, NODE_EXTRA_CA_CERTS } = environment
  const bundles = SSL_CERT_FILE ? [SSL_CERT_FILE] : BUNDLES
  const texts = [...bundles, ...(NODE_EXTRA_CA_CERTS ? [NODE_EXTRA_CA_CERTS] : [])].map(textOf)
  for (const folder of SSL_CERT_DIR?.split(':') ?? []) texts.push(...filesOf(folder).map(textOf))
  return texts.flatMap(text => text.match(CERTIFICATE) ?? [])
}

function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder).map(name => join(folder, name))
  } catch {
    return [] // missing, or unreadable for this user: as if there were none
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // missing or unreadable
  }
}
