// Certificates for `localtunnels server --acme`: adds them to the server's options, and prints events about them.

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { namedDnsProvider } from '../../certificates/acme/dns/named.ts'
import {
  AcmeCertificates,
  LETS_ENCRYPT,
  LETS_ENCRYPT_STAGING,
  type NameOwner,
} from '../../certificates/acme.ts'
import { ResumeFiles } from '../../client/tunnels/resume-files.ts'
import type { AcmeSettings, ServerConfigOptions } from '../../config/server-config.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { stateFolder } from '../../state-folder.ts'
import type { CertificateStore } from '../../store.ts'
import { SqliteCertificates } from '../../stores/sqlite-certificates.ts'
import type { Run } from '../run.ts'
import { describe } from '../sharing/report.ts'
import type { CertificateSource } from './certificate-source.ts'

const HTTPS_PORT = 443
const HTTP_PORT = 80

export class ServerAcme implements CertificateSource {
  readonly #key: string
  readonly #store: CertificateStore
  readonly #certificates: AcmeCertificates

  /** Opens the store and the authority. Rejects with `OPTION_INVALID`, or `STORE_FAILED`. */
  static async open(acme: AcmeSettings, options: ServerConfigOptions, run: Run): Promise<ServerAcme> {
    if (options.tls !== undefined || options.tlsFiles !== undefined)
      throw optionInvalid('--acme orders certificates: leave out those of --tls-cert.')
    if (acme.staging && acme.directory !== undefined)
      throw optionInvalid("--acme-staging is Let's Encrypt's: it does not go with --acme-directory.")
    if ((acme.keyId === undefined) !== (acme.hmacKey === undefined))
      throw optionInvalid('--acme-key-id and --acme-hmac-key belong together.')
    if (options.domains === undefined)
      throw optionInvalid('--acme needs --domain: the name that leads to this server.')
    const { domains } = options
    const folder = stateFolder(run.environment)
    if (folder === undefined)
      throw new TunnelError(
        'STORE_FAILED',
        'There is no folder for certificates: set XDG_STATE_HOME to one that this user may write to.',
      )
    const dns = acme.dns === undefined ? undefined : await namedDnsProvider(acme.dns, run.environment)
    const directory = acme.directory ?? (acme.staging ? LETS_ENCRYPT_STAGING : LETS_ENCRYPT)
    const own = new SqliteCertificates(join(folder, 'certificates.sqlite'), directory)
    const store = await sharedStore(own, directory, options)
    try {
      return new ServerAcme(
        acme,
        options,
        store,
        new AcmeCertificates({
          domains,
          contact: [acme.email],
          store,
          directory,
          challenge: acme.challenge ?? 'http-01',
          holder: await holderOf(folder, directory),
          ...(acme.ca !== undefined && { ca: acme.ca }),
          ...(dns && { dns }),
          ...(acme.resolvers && { resolvers: acme.resolvers }),
          ...(acme.addresses && { addresses: acme.addresses }),
          ...(acme.keyId !== undefined &&
            acme.hmacKey !== undefined && { externalAccount: { keyId: acme.keyId, hmacKey: acme.hmacKey } }),
        }),
        run,
      )
    } catch (error) {
      await store.close()
      throw error
    }
  }

  private constructor(
    acme: AcmeSettings,
    options: ServerConfigOptions,
    store: CertificateStore,
    certificates: AcmeCertificates,
    { output }: Run,
  ) {
    this.#key = keyOf(acme, options)
    this.#store = store
    this.#certificates = certificates
    certificates.on('progressed', ({ names, step }) => {
      const all = names.join(', ')
      const message =
        step === 'dns'
          ? `For ${all}: waiting for DNS to have the record.`
          : `The authority checks ${all} now.`
      output.event({ type: 'notice', code: 'CERTIFICATE_ORDERED', message, names })
    })
    certificates.on('issued', ({ names, notAfterMs, isRenewal }) =>
      output.event({
        type: 'notice',
        code: isRenewal ? 'CERTIFICATE_RENEWED' : 'CERTIFICATE_ISSUED',
        message: `Certificate for ${names.join(', ')}, until ${timeOf(notAfterMs).slice(0, 10)}.`,
        names,
      }),
    )
    certificates.on('failed', ({ names, error, untilMs, hasCertificate }) => {
      const { message, ...rest } = describe(error)
      // Most messages already contain the name.
      const whose = names.length === 1 && message.includes(names[0] ?? '') ? '' : `${names.join(', ')}: `
      const retryAt = new Date(untilMs).toISOString()
      // A delayed order already contains the time.
      const next = message.includes(retryAt) ? '' : ` Next try at ${timeOf(untilMs)} UTC.`
      const text = `${whose}${message}${next}`
      output.event({ type: 'error', ...rest, message: text, names, retryAt, hasCertificate })
    })
    certificates.on('error', error => output.event({ type: 'error', ...describe(error) }))
  }

  /** Returns the options of the server with certificates. Throws `OPTION_INVALID` for changes that need a restart. */
  added(options: ServerConfigOptions): ServerConfigOptions {
    if (options.acme === undefined || keyOf(options.acme, options) !== this.#key)
      throw optionInvalid(
        'acme, domains and http-port cannot change while the server runs: start it again for that.',
      )
    const { acme, port = HTTPS_PORT, ...rest } = options
    const httpPort = acme.challenge === 'tls-alpn-01' ? options.httpPort : (options.httpPort ?? HTTP_PORT)
    const certificates = this.#certificates
    const source = { certificates, challenges: certificates }
    return { ...rest, port, ...source, ...(httpPort !== undefined && { httpPort }) }
  }

  start(server: NameOwner): Promise<void> {
    return this.#certificates.start(server)
  }

  async stop(): Promise<void> {
    await this.#certificates.stop()
    await this.#store.close()
  }
}

/**
 * Returns the id under which orders are claimed in the store. It continues that of a killed server, so that its order
 * goes on at once. While another server with that id is alive, such as one being replaced, this one gets its own.
 */
async function holderOf(folder: string, directory: string): Promise<string> {
  const files = new ResumeFiles(folder, directory)
  const orders = { kind: 'acme', name: 'orders' } as const
  const holder = (await files.take(orders)) ?? randomUUID()
  // The disk may be full: then the next start waits until the claim ends.
  await files.keep(orders, holder).catch(() => {})
  return holder
}

/** Opens the store that all servers of a cluster share, with a local copy. */
async function sharedStore(
  own: SqliteCertificates,
  authority: string,
  { clusterOf }: ServerConfigOptions,
): Promise<CertificateStore> {
  if (clusterOf === undefined || clusterOf.url === '') return own
  const { RedisCertificates } = await import('../../directories/redis-certificates.ts')
  const { CopiedCertificates } = await import('../../stores/copied-certificates.ts')
  const { url, prefix, ca, secret } = clusterOf
  const shared = await RedisCertificates.open({
    url,
    authority,
    ...(prefix !== undefined && { prefix }),
    ...(ca !== undefined && { ca }),
    ...(secret !== undefined && { secret }),
  }).catch(async error => {
    await own.close()
    throw error
  })
  return new CopiedCertificates(own, shared)
}

/** Returns a time such as 2027-02-24 00:30:37. */
const timeOf = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')

const keyOf = (acme: AcmeSettings, { domains, httpPort }: ServerConfigOptions): string =>
  JSON.stringify([acme, domains, httpPort])
