// Signatures of requests to AWS, version 4, for requests without a query that repeats names.

import { createHash, createHmac } from 'node:crypto'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

export interface AwsRequest {
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
