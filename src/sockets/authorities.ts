// The authorities that certificates are verified by: those of the runtime and those of the system, as curl and git do. Loaded with the
// first TLS connection, because reading them takes a few milliseconds.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as tls from 'node:tls'

/** The functions that Bun and Node from 22.15 on have, and the types of Node 20 lack. */
interface Lists {
  readonly getCACertificates?: (this: void, kind: 'default' | 'system') => readonly string[]
}

/** The paths of the authorities on Debian and most others; Red Hat; SUSE; Alpine and the BSDs. */
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
 * Returns the PEM text of the authorities that a dial has to name. `undefined` if the runtime knows them all. `own`: one more
 * to trust.
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

/** Returns the files that programs of the C library read. NODE_EXTRA_CA_CERTS is Node's own, which a list of ours replaces. */
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
    return [] // not there, or not for this user: as without it
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // likewise
  }
}
