// Zones at Cloudflare, by its API (version 4).

import { boundedRequest } from '../../bounded-request.ts'
import { dnsFailed } from './failed.ts'
import type { DnsProvider, DnsRecord } from './provider.ts'

export interface CloudflareOptions {
  /** An API token that may edit DNS of the zone, and read zones unless `zoneId` is given. */
  readonly token: string
  /** The id of the zone. Default: found by the name of the record. */
  readonly zoneId?: string
  /** The URL of the API. Default `https://api.cloudflare.com/client/v4`. */
  readonly apiUrl?: string
  readonly servers?: readonly string[]
}

const TIMEOUT_MS = 30_000
const MAX_BYTES = 1_048_576
const TTL_SECONDS = 60
/** The code of Cloudflare for a record that exists already. */
const EXISTS = 81058

interface Answer {
  readonly success?: boolean
  readonly errors?: readonly { readonly code?: number; readonly message?: string }[]
  readonly result?: unknown
}

export class Cloudflare implements DnsProvider {
  readonly #options: CloudflareOptions
  readonly #zones = new Map<string, string>()
  readonly servers: readonly string[] | undefined

  constructor(options: CloudflareOptions) {
    this.#options = options
    this.servers = options.servers
  }

  async add({ name, value }: DnsRecord, signal: AbortSignal): Promise<void> {
    try {
      const zone = await this.#zoneOf(name, signal)
      const record = { type: 'TXT', name, content: `"${value}"`, ttl: TTL_SECONDS }
      const answer = await this.#ask(`/zones/${zone}/dns_records`, signal, 'POST', record)
      if (answer.success !== true && !answer.errors?.some(({ code }) => code === EXISTS))
        throw refused(answer)
    } catch (cause) {
      throw signal.aborted ? signal.reason : dnsFailed(`Cloudflare did not add ${name}`, cause)
    }
  }

  async remove({ name, value }: DnsRecord, signal: AbortSignal): Promise<void> {
    try {
      const zone = await this.#zoneOf(name, signal)
      const query = new URLSearchParams({ type: 'TXT', name, per_page: '100' })
      const answer = await this.#ask(`/zones/${zone}/dns_records?${query.toString()}`, signal)
      for (const { id, content } of recordsOf(answer)) {
        if (content.replace(/^"|"$/g, '') !== value) continue
        const removed = await this.#ask(`/zones/${zone}/dns_records/${id}`, signal, 'DELETE')
        if (removed.success !== true) throw refused(removed)
      }
    } catch (cause) {
      throw signal.aborted ? signal.reason : dnsFailed(`Cloudflare did not remove ${name}`, cause)
    }
  }

  /** Finds the zone of this account that is the longest suffix of the name. */
  async #zoneOf(name: string, signal: AbortSignal): Promise<string> {
    if (this.#options.zoneId !== undefined) return this.#options.zoneId
    const labels = name.split('.')
    for (let start = 0; start < labels.length - 1; start++) {
      const zone = labels.slice(start).join('.')
      const known = this.#zones.get(zone)
      if (known !== undefined) return known
      // No zone begins with an underscore.
      if (zone.startsWith('_')) continue
      const [found] = recordsOf(await this.#ask(`/zones?name=${encodeURIComponent(zone)}`, signal))
      if (found === undefined) continue
      this.#zones.set(zone, found.id)
      return found.id
    }
    throw new Error('the token sees no zone of this name')
  }

  async #ask(path: string, signal: AbortSignal, method = 'GET', body?: object): Promise<Answer> {
    const { token, apiUrl = 'https://api.cloudflare.com/client/v4' } = this.#options
    const { status, text } = await boundedRequest(`${apiUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      signal,
    })
    try {
      // Each field is checked when it is used.
      return JSON.parse(text) as Answer
    } catch {
      throw new Error(`status ${status}, and no JSON`)
    }
  }
}

function recordsOf(answer: Answer): readonly { readonly id: string; readonly content: string }[] {
  if (answer.success !== true) throw refused(answer)
  if (!Array.isArray(answer.result)) throw new Error('no list in the answer')
  return answer.result
    .filter(record => /^\w{1,64}$/.test(record?.id))
    .map(({ id, content }) => ({ id: String(id), content: String(content) }))
}

function refused({ errors = [] }: Answer): Error {
  const words = errors.map(({ code, message }) => `${message} (${code})`)
  return new Error(words.join('; ') || 'no reason given')
}
