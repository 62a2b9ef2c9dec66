// Certificates from PEM files, chosen by name, read again when they change.

import { X509Certificate } from 'node:crypto'
import { open } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Certificate, Certificates, ListedCertificate } from '../certificates.ts'
import { messageOf, optionInvalid, TunnelError, whyUnreadable } from '../errors.ts'
import { Events } from '../events.ts'
import { FileWatch } from '../file-watch.ts'
import { pairFault } from '../x509/pair.ts'
import { isHostName, normalName, wildcardOf } from './names.ts'

/** The paths of two PEM files. */
export interface CertificateFile {
  /** The certificate first, then those between it and the root. At most 1 MiB. */
  readonly cert: string
  /** The path of the private key, which is not encrypted. At most 1 MiB. */
  readonly key: string
}

export interface FileCertificatesEvents {
  /** Emitted when a pair of files has changed, and the new certificate is used. */
  reloaded: { readonly file: CertificateFile; readonly names: readonly string[]; readonly notAfterMs: number }
  /**
   * Emitted if a changed pair is unusable (`TLS_INVALID`), so that the earlier certificate is still used; or if
   * changes may go unnoticed.
   */
  error: TunnelError
}

interface Loaded {
  readonly certificate: Certificate
  readonly names: readonly string[]
  readonly notAfterMs: number
}

const MAX_FILE_BYTES = 1_048_576

/**
 * The `Certificates` from files. A name that a certificate lists wins over a wildcard; of two certificates with the same name,
 * the first given file wins. The first file also serves hellos without a host name, and names that no file has.
 */
export class FileCertificates extends Events<FileCertificatesEvents> implements Certificates {
  readonly #files: readonly CertificateFile[]
  readonly #watch: FileWatch
  #loaded: readonly Loaded[] = []
  /** The faults by file, so that a lasting fault is reported once. */
  readonly #faults = new Map<CertificateFile, string>()
  #byName: ReadonlyMap<string, Certificate> = new Map()
  #reading: Promise<void> | undefined
  #isStale = false

  /** Reads the files. Rejects with `TLS_INVALID` if a pair is unusable, and with `OPTION_INVALID` for an empty list. */
  static async open(files: readonly CertificateFile[]): Promise<FileCertificates> {
    if (files.length === 0) throw optionInvalid('No certificate files are given.')
    const certificates = new FileCertificates(files)
    try {
      certificates.#serve(await Promise.all(files.map(load)))
      return certificates
    } catch (error) {
      certificates.close()
      throw error
    }
  }

  private constructor(files: readonly CertificateFile[]) {
    super()
    this.#files = files
    // Before the files are read, so that all later changes are noticed.
    this.#watch = new FileWatch(
      files.flatMap(({ cert, key }) => [cert, key]),
      () => void this.reload(),
      cause =>
        this.emit(
          'error',
          invalid(`Changes of certificate files will go unnoticed: ${cause.message}.`, cause),
        ),
    )
  }

  find(name: string): Certificate | undefined {
    const normal = normalName(name)
    const found = this.#byName.get(normal) ?? this.#byName.get(wildcardOf(normal))
    return found ?? this.#loaded[0]?.certificate
  }

  list(): readonly ListedCertificate[] {
    return this.#loaded.map(({ names, notAfterMs }) => ({ names, notAfterMs }))
  }

  /** Reads all files now, as it also does when they change. Faults are `error` events: it does not reject. */
  async reload(): Promise<void> {
    this.#isStale = true
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Stops watching. The certificates are still used. */
  close(): void {
    this.#watch.stop()
  }

  async #readAll(): Promise<void> {
    // A file that changed while it was read may be incomplete.
    while (this.#isStale) {
      this.#isStale = false
      const before = this.#loaded
      const after = await Promise.all(this.#files.map((file, index) => this.#read(file, before[index]!)))
      this.#serve(after)
      this.#files.forEach((file, index) => {
        const { names, notAfterMs } = after[index]!
        if (after[index] !== before[index]) this.emit('reloaded', { file, names, notAfterMs })
      })
    }
  }

  /** Returns the certificate to use from now on: the new one if it is valid, otherwise the earlier one. */
  async #read(file: CertificateFile, before: Loaded): Promise<Loaded> {
    try {
      const now = await load(file)
      this.#faults.delete(file)
      const { cert, key } = before.certificate
      if (now.certificate.cert === cert && now.certificate.key === key) return before
      if (now.notAfterMs < Date.now() && now.notAfterMs < before.notAfterMs)
        throw invalid(`${file.cert} ended on ${new Date(now.notAfterMs).toISOString()}.`)
      return now
    } catch (cause) {
      const error = cause instanceof TunnelError ? cause : invalid(`${file.cert} cannot be used.`, cause)
      if (this.#faults.get(file) !== error.message) this.emit('error', error)
      this.#faults.set(file, error.message)
      return before
    }
  }

  #serve(loaded: readonly Loaded[]): void {
    const byName = new Map<string, Certificate>()
    for (const { names, certificate } of loaded) {
      for (const name of names) if (!byName.has(name)) byName.set(name, certificate)
    }
    this.#loaded = loaded
    this.#byName = byName
  }
}

async function load(file: CertificateFile): Promise<Loaded> {
  const [cert, key] = await Promise.all([read(file.cert), read(file.key)])
  const fault = pairFault(cert, key)
  if (fault !== undefined) throw invalid(`${file.cert}, ${file.key}: ${fault}`)
  try {
    // Checks the whole chain with the library that will use it.
    createSecureContext({ cert, key })
  } catch (cause) {
    throw invalid(`${file.cert} cannot be used: ${messageOf(cause)}.`, cause)
  }
  const { subjectAltName = '', validTo } = new X509Certificate(cert)
  return { certificate: { cert, key }, names: namesOf(subjectAltName), notAfterMs: Date.parse(validTo) }
}

async function read(path: string): Promise<string> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, of at most ${MAX_FILE_BYTES}`)
    return await file.readFile('utf8')
  } catch (cause) {
    throw invalid(`${path} cannot be read: ${whyUnreadable(cause)}.`, cause)
  }
}

/** Returns the host names and wildcards in `DNS:a.test, DNS:*.b.test, IP Address:127.0.0.1`. Hellos contain no addresses. */
function namesOf(alternatives: string): readonly string[] {
  return alternatives
    .split(', ')
    .filter(entry => entry.startsWith('DNS:'))
    .map(entry => normalName(entry.slice('DNS:'.length)))
    .filter(name => isHostName(name.replace(/^\*\./, '')))
}

const invalid = (detail: string, cause?: unknown): TunnelError =>
  new TunnelError('TLS_INVALID', detail, { cause })
