// Zones at AWS Route 53, by its API (2013-04-01).

import { createHash, createHmac } from 'node:crypto'
import { boundedRequest } from '../../bounded-request.ts'
import { type Clock, pause } from '../../clock.ts'
import { dnsFailed } from './failed.ts'
import type { DnsProvider, DnsRecord } from './provider.ts'

export interface Route53Options {
  /** The credentials, which may change record sets of the zone, and list zones unless `hostedZoneId` is given. */
  readonly credentials: AwsCredentials
  /** The id of the zone. Default: found by the name of the record. */
  readonly hostedZoneId?: string
  /** The URL of the API. Default `https://route53.amazonaws.com`. */
  readonly apiUrl?: string
  readonly servers?: readonly string[]
  readonly clock: Clock
}

const VERSION = '2013-04-01'
/** The region of signatures for Route 53, wherever it is used. */
const REGION = 'us-east-1'
const TIMEOUT_MS = 30_000
const MAX_BYTES = 1_048_576
const TTL_SECONDS = 60
/** The longest time in milliseconds until all of its servers have a change; usually it takes up to a minute. */
const IN_SYNC_TIMEOUT_MS = 120_000
const IN_SYNC_POLL_MS = 3_000

interface RecordSet {
  readonly texts: readonly string[]
  readonly ttl: number
}

export class Route53 implements DnsProvider {
  readonly #options: Route53Options
  readonly servers: readonly string[] | undefined
  /**
   * The last change. Changes run one after the other, because all texts of a name are one set, which is read and
   * written as a whole.
   */
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: Route53Options) {
    this.#options = options
    this.servers = options.servers
  }

  add({ name, value }: DnsRecord, signal: AbortSignal): Promise<void> {
    return this.#change('add', name, signal, texts => [...texts.filter(text => text !== value), value])
  }

  remove({ name, value }: DnsRecord, signal: AbortSignal): Promise<void> {
    return this.#change('remove', name, signal, texts => texts.filter(text => text !== value))
  }

  #change(
    what: string,
    name: string,
    signal: AbortSignal,
    edit: (texts: readonly string[]) => readonly string[],
  ): Promise<void> {
    const change = this.#last.then(async () => {
      try {
        await this.#replace(name, signal, edit)
      } catch (cause) {
        throw signal.aborted ? signal.reason : dnsFailed(`Route 53 did not ${what} ${name}`, cause)
      }
    })
    this.#last = change.catch(() => {})
    return change
  }

  async #replace(
    name: string,
    signal: AbortSignal,
    edit: (texts: readonly string[]) => readonly string[],
  ): Promise<void> {
    const zone = await this.#zoneOf(name, signal)
    const { texts: before, ttl } = await this.#setOf(zone, name, signal)
    const after = edit(before)
    if (after.join() === before.join()) return
    // A set cannot be empty: with its last text, the set itself is deleted, and must be given unchanged.
    const change =
      after.length > 0
        ? changeXml('UPSERT', name, after, TTL_SECONDS)
        : changeXml('DELETE', name, before, ttl)
    const answer = await this.#ask(`/hostedzone/${zone}/rrset/`, signal, 'POST', change)
    const id = field(answer, 'Id')?.replace('/change/', '')
    if (after.length > 0 && id !== undefined) await this.#inSync(id, signal)
  }

  async #setOf(zone: string, name: string, signal: AbortSignal): Promise<RecordSet> {
    const query = new URLSearchParams({ maxitems: '1', name, type: 'TXT' })
    const answer = await this.#ask(`/hostedzone/${zone}/rrset?${query.toString()}`, signal)
    const set = fields(answer, 'ResourceRecordSet')[0] ?? ''
    // The list begins at this name and continues with others.
    if (field(set, 'Name')?.replace(/\.$/, '') !== name || field(set, 'Type') !== 'TXT')
      return { texts: [], ttl: TTL_SECONDS }
    const texts = fields(set, 'Value').map(value => unescaped(value).replace(/^"|"$/g, ''))
    return { texts, ttl: Number(field(set, 'TTL')) }
  }

  async #inSync(id: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const endMs = clock.now() + IN_SYNC_TIMEOUT_MS
    while (field(await this.#ask(`/change/${encodeURIComponent(id)}`, signal), 'Status') !== 'INSYNC') {
      if (clock.now() > endMs) throw new Error(`the change was not in sync after ${IN_SYNC_TIMEOUT_MS} ms`)
      await pause(clock, IN_SYNC_POLL_MS, signal)
    }
  }

  async #zoneOf(name: string, signal: AbortSignal): Promise<string> {
    if (this.#options.hostedZoneId !== undefined) return this.#options.hostedZoneId
    const labels = name.split('.')
    for (let start = 0; start < labels.length - 1; start++) {
      const zone = labels.slice(start).join('.')
      if (zone.startsWith('_')) continue
      const query = new URLSearchParams({ dnsname: zone, maxitems: '10' })
      const answer = await this.#ask(`/hostedzonesbyname?${query.toString()}`, signal)
      const found = fields(answer, 'HostedZone').find(
        each => field(each, 'Name') === `${zone}.` && field(each, 'PrivateZone') !== 'true',
      )
      const id = found && field(found, 'Id')?.replace('/hostedzone/', '')
      if (id !== undefined && /^[A-Z0-9]{1,32}$/.test(id)) return id
    }
    throw new Error('the account has no public zone of this name')
  }

  async #ask(path: string, signal: AbortSignal, method = 'GET', body = ''): Promise<string> {
    const { apiUrl = 'https://route53.amazonaws.com', credentials, clock } = this.#options
    const url = new URL(`${apiUrl}/${VERSION}${path}`)
    const request = { method, url, body, region: REGION, service: 'route53' }
    const headers = signedHeaders(request, credentials, clock.now())
    const { status, text } = await boundedRequest(url.href, {
      method,
      headers: body === '' ? headers : { ...headers, 'content-type': 'text/xml' },
      ...(body !== '' && { body }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      signal,
    })
    if (status === 200) return text
    throw new Error(`${field(text, 'Message') ?? `status ${status}`} (${field(text, 'Code') ?? status})`)
  }
}

function changeXml(action: 'UPSERT' | 'DELETE', name: string, texts: readonly string[], ttl: number): string {
  const records = texts.map(text => `<ResourceRecord><Value>${escaped(`"${text}"`)}</Value></ResourceRecord>`)
  return `<?xml version="1.0" encoding="UTF-8"?>
<ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/${VERSION}/"><ChangeBatch><Changes><Change>\
<Action>${action}</Action><ResourceRecordSet><Name>${escaped(name)}.</Name><Type>TXT</Type><TTL>${ttl}</TTL>\
<ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet></Change></Changes></ChangeBatch>\
</ChangeResourceRecordSetsRequest>`
}

/** Returns the texts between the tags of a name. The elements that are read here contain none of their own name. */
function fields(xml: string, tag: string): readonly string[] {
  return [...xml.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, 'gs'))].map(match => match[1]!)
}

const field = (xml: string, tag: string): string | undefined => fields(xml, tag)[0]

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

const escaped = (text: string): string => text.replace(/[&<>"]/g, char => ENTITIES[char]!)

function unescaped(text: string): string {
  return Object.entries(ENTITIES).reduceRight(
    (result, [char, entity]) => result.replaceAll(entity, char),
    text,
  )
}

interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

interface AwsRequest {
  readonly method: string
  readonly url: URL
  readonly body: string
  readonly region: string
  readonly service: string
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** Returns the headers to add: date, session token and signature. */
export function signedHeaders(
  { method, url, body, region, service }: AwsRequest,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  nowMs: number,
): Record<string, string> {
  const date = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers: Record<string, string> = { host: url.host, 'x-amz-date': date }
  if (sessionToken !== undefined) headers['x-amz-security-token'] = sessionToken
  const names = Object.keys(headers).sort()
  const lines = names.map(name => `${name}:${headers[name]}\n`).join('')
  const list = names.join(';')
  const canonical = [method, url.pathname, sortedQuery(url), lines, list, sha256(body)].join('\n')
  const scope = `${date.slice(0, 8)}/${region}/${service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`)
  const signature = hmac(key, text).toString('hex')
  const { host: _, ...sent } = headers
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${list}, Signature=${signature}`,
  }
}

/** Returns names and values percent-encoded as in RFC 3986, with `%20` for a space. */
function sortedQuery({ searchParams }: URL): string {
  const encode = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const pairs = [...searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`)
  return pairs.sort().join('&')
}
