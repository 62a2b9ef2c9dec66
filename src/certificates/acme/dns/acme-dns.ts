// acme-dns: a small server for challenges only. The user once makes `_acme-challenge` a CNAME to a name there.

import { boundedRequest } from '../../bounded-request.ts'
import { dnsFailed } from './failed.ts'
import type { DnsProvider, DnsRecord } from './provider.ts'

/** The response of the acme-dns server to `POST /register`. */
export interface AcmeDnsAccount {
  readonly username: string
  readonly password: string
  readonly subdomain: string
  /** The name to which `_acme-challenge` must point. */
  readonly fulldomain: string
}

export interface AcmeDnsOptions {
  /** The URL of the server, such as `https://auth.example.org`. */
  readonly url: string
  /** The accounts, one for each domain: acme-dns stores two texts for each, as many as a name and its wildcard need. */
  readonly accounts: readonly AcmeDnsAccount[]
  readonly servers?: readonly string[]
}

const TIMEOUT_MS = 30_000
const MAX_BYTES = 65_536

export class AcmeDns implements DnsProvider {
  readonly #options: AcmeDnsOptions
  readonly servers: readonly string[] | undefined

  constructor(options: AcmeDnsOptions) {
    this.#options = options
    this.servers = options.servers
  }

  async add({ name, value }: DnsRecord, signal: AbortSignal): Promise<void> {
    const { url, accounts } = this.#options
    try {
      const account = accounts.find(({ fulldomain }) => fulldomain.toLowerCase().replace(/\.$/, '') === name)
      if (account === undefined) {
        const known = accounts.map(({ fulldomain }) => fulldomain).join(', ')
        throw new Error(`no account has this name: make it a CNAME record to ${known}`)
      }
      const { status, text } = await boundedRequest(`${url.replace(/\/$/, '')}/update`, {
        method: 'POST',
        headers: {
          'x-api-user': account.username,
          'x-api-key': account.password,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ subdomain: account.subdomain, txt: value }),
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
        signal,
      })
      if (status !== 200) throw new Error(`status ${status}: ${text}`)
    } catch (cause) {
      throw signal.aborted ? signal.reason : dnsFailed(`acme-dns did not set ${name}`, cause)
    }
  }

  /** Does nothing: acme-dns cannot remove, and the next texts replace these. */
  async remove(): Promise<void> {}
}
