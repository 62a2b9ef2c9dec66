// Certificates of `localtunnels server` from the files of --tls-cert and --tls-key, which are read again when they change.

import { type CertificateFile, FileCertificates } from '../../certificates/files.ts'
import type { ServerConfigOptions } from '../../config/server-config.ts'
import { errorOf, optionInvalid } from '../../errors.ts'
import { type ServerEnd, withGuards } from '../ends.ts'
import type { Run } from '../run.ts'
import { describe } from '../sharing/report.ts'
import type { CertificateSource } from './certificate-source.ts'

export class CertificateFiles implements CertificateSource {
  readonly #certificates: FileCertificates
  readonly #files: readonly CertificateFile[]
  readonly #output: Run['output']
  /** The options of the server, for a change of its only certificate. */
  #options: ServerConfigOptions = {}

  /** Reads the files. Rejects with `TLS_INVALID`. */
  static async open(files: readonly CertificateFile[], { output }: Run): Promise<CertificateFiles> {
    return new CertificateFiles(await FileCertificates.open(files), files, output)
  }

  private constructor(
    certificates: FileCertificates,
    files: readonly CertificateFile[],
    output: Run['output'],
  ) {
    this.#certificates = certificates
    this.#files = files
    this.#output = output
  }

  added({ tlsFiles: _files, ...options }: ServerConfigOptions): ServerConfigOptions {
    if (options.acme !== undefined)
      throw optionInvalid('acme orders certificates: leave out --tls-cert and --tls-key.')
    this.#options = options
    // A single certificate for all names does not depend on the hello, and Bun's own TLS is cheaper for large transfers.
    const tls = this.#files.length === 1 ? this.#certificates.find('') : undefined
    return tls === undefined ? { ...options, certificates: this.#certificates } : { ...options, tls }
  }

  async start(server: ServerEnd): Promise<void> {
    const certificates = this.#certificates
    certificates.on('reloaded', ({ file, names, notAfterMs }) => {
      const message = `${file.cert} is shown from now on, for ${names.join(', ')}, until ${new Date(notAfterMs).toISOString()}.`
      const done = () => this.#output.event({ type: 'notice', code: 'CERTIFICATE_RELOADED', message })
      withGuards(this.added(this.#options))
        .then(options => server.reload(options))
        .then(done, error => this.#failed(error))
    })
    certificates.on('error', error => this.#failed(error))
  }

  async stop(): Promise<void> {
    this.#certificates.close()
  }

  #failed(cause: unknown): void {
    const error = errorOf(cause)
    this.#output.event({ type: 'error', ...describe(error) })
  }
}
