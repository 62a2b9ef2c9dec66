// Contract: a source of certificates for `localtunnels server`. Loaded if flags or a file ask for one.

import type { ServerConfigOptions } from '../../config/server-config.ts'
import { optionInvalid } from '../../errors.ts'
import type { ServerEnd } from '../ends.ts'
import type { Run } from '../run.ts'

export interface CertificateSource {
  /** Returns the options of the server with its certificates. Throws `OPTION_INVALID` for changes that need a restart. */
  added(options: ServerConfigOptions): ServerConfigOptions
  start(server: ServerEnd): Promise<void>
  stop(): Promise<void>
}

/** Opens the source of certificates. `undefined` if the options name none. Rejects with its error. */
export async function openSource(
  options: ServerConfigOptions,
  run: Run,
): Promise<CertificateSource | undefined> {
  const { acme, tlsFiles } = options
  if (acme !== undefined) return (await import('./acme.ts')).ServerAcme.open(acme, options, run)
  if (tlsFiles === undefined) return undefined
  return (await import('./certificate-files.ts')).CertificateFiles.open(tlsFiles, run)
}

/** Throws if a reload adds a source to a server that started without one. */
export function refuseSource({ acme }: ServerConfigOptions): void {
  if (acme === undefined) return
  throw optionInvalid('acme begins with the server: start it again for that.')
}
