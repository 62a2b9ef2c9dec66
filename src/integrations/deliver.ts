// Delivers a captured webhook to an app in a test, signed as its provider would sign it now.

import { readFile } from 'node:fs/promises'
import { optionInvalid } from '../errors.ts'
import { signed } from '../signatures/signatures.ts'
import { PROVIDERS, type Provider } from '../signatures/verify-settings.ts'

export interface DeliverOptions {
  /** The provider and the secret with which the app checks: `{ stripe: 'whsec_…' }`. Default: the signature of the file. */
  readonly sign?: Partial<Record<Provider, string>>
  /** Headers in place of those in the file; `undefined` leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** The beginning of the request's URL. Default: `http://` and the Host of the file. */
  readonly base?: string
}

/** The headers that belong to one connection, or follow from the body. */
const FRAMING = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'expect',
  'te',
  'trailer',
  'upgrade',
])

/**
 * Reads a request from a file of `localtunnels fixture save`, and resolves with the response of `fetch`. Secrets that
 * are missing in the file are left out. Rejects with `OPTION_INVALID` for a file that is not a request.
 */
export async function deliver(
  file: string | URL,
  fetch: (request: Request) => Response | Promise<Response>,
  options: DeliverOptions = {},
): Promise<Response> {
  const { method, target, fields, body } = parse(await readFile(file), String(file))
  const host = fields.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? 'localhost'
  const headers = new Headers()
  for (const [name, value] of fields) if (!FRAMING.has(name.toLowerCase())) headers.append(name, value)
  const request = { header: (name: string) => headers.get(name) ?? undefined, body }
  for (const [provider, secret] of Object.entries(options.sign ?? {})) {
    if (!isProvider(provider)) throw optionInvalid(`sign: "${provider}" is none of ${PROVIDERS.join(', ')}.`)
    const now = Math.floor(Date.now() / 1_000)
    for (const [name, value] of Object.entries(signed(provider, request, { secret, now })))
      headers.set(name, value)
  }
  for (const [name, value] of Object.entries(options.headers ?? {}))
    if (value === undefined) headers.delete(name)
    else headers.set(name, value)
  const path = target.startsWith('/') ? target : `/${target}`
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return await fetch(
    new Request(`${options.base ?? `http://${host}`}${path}`, {
      method,
      headers,
      ...(hasBody && { body: new Uint8Array(body) }),
    }),
  )
}

function isProvider(name: string): name is Provider {
  return PROVIDERS.some(one => one === name)
}

interface Fixture {
  readonly method: string
  readonly target: string
  readonly fields: readonly (readonly [string, string])[]
  readonly body: Uint8Array
}

/** Parses the file. Lines may end with LF alone, because people edit such files. */
function parse(bytes: Buffer, file: string): Fixture {
  const invalid = (what: string) => optionInvalid(`${file} is no request: ${what}.`)
  const [crlf, lf] = [bytes.indexOf('\r\n\r\n'), bytes.indexOf('\n\n')]
  const isCrlf = crlf >= 0 && (lf < 0 || crlf < lf)
  if (!isCrlf && lf < 0) throw invalid('no empty line ends its head')
  const head = bytes.subarray(0, isCrlf ? crlf : lf).toString('latin1')
  const [first = '', ...lines] = head.split(/\r?\n/)
  const [, method, target] = /^([!#$%&'*+.^_`|~\w-]+) (\S+)(?: HTTP\/1\.[01])?$/.exec(first) ?? []
  if (method === undefined || target === undefined) throw invalid(`its first line is "${first.slice(0, 80)}"`)
  const fields = lines.map(line => {
    const at = line.indexOf(':')
    if (at <= 0) throw invalid(`"${line.slice(0, 80)}" is no header`)
    return [line.slice(0, at), line.slice(at + 1).trim()] as const
  })
  return { method, target, fields, body: bytes.subarray(isCrlf ? crlf + 4 : lf + 2) }
}
