// Which requests an app gets, as a part of a client: webhooks with a valid signature, requests that match `filter`,
// and bodies with a length.

import type { Install } from '../../client/contracts/part.ts'
import type { HttpTunnelOptions, OriginOptions } from '../../client/options.ts'
import type { Origin } from '../../client/origins/origin.ts'
import { optionInvalid } from '../../errors.ts'
import { ascii, joined } from '../../http/characters.ts'
import type { RequestHead } from '../../http/head.ts'
import { whole } from '../../option-names.ts'
import { prefixOf } from '../../paths/rewriting.ts'
import { receivedAt, type VerifySettings, webhooksOf } from '../../signatures/verify-settings.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { filterJudge } from './filter.ts'
import type { Judge } from './judged-connection.ts'

export const installWebhooks: Install = () => ({
  follow({ options, protocol, routes }) {
    const { collectBodyBytes } = options ?? {}
    if (collectBodyBytes !== undefined) checkCollecting(collectBodyBytes, protocol)
    const webhooks = webhooksOf(options)
    if (webhooks.length > 0 && [protocol, ...routes.map(route => route.protocol)].some(Boolean))
      throw optionInvalid(
        'verify (or a webhook of the guard) and protocol exclude each other: webhooks are HTTP/1.1.',
      )
    // The server compares the visitor's path, and the client the app's: a rule for one would not hold for the other.
    const hasPrefix = [options ?? {}, ...routes.map(route => route.options)].some(hasOwnPaths)
    if (hasPrefix && (webhooks.length > 0 || options?.filter !== undefined))
      throw optionInvalid(
        'verify, filter and webhooks of the guard exclude stripPrefix and addPrefix, also those of routes: give the app its own paths.',
      )
    const required = webhooks.filter(({ isRequired }) => isRequired)
    const filter = filterOf(options)
    if (filter === undefined && required.length === 0 && collectBodyBytes === undefined) return undefined
    return {
      wrap(origin, spoken) {
        const isCollected = collectBodyBytes !== undefined && spoken === undefined
        const collected = isCollected ? judged(origin, () => lengthJudge(collectBodyBytes)) : origin
        const signed = required.reduce(signedOnly, collected)
        return filter === undefined ? signed : judged(signed, () => filter)
      },
    }
  },
})

const hasOwnPaths = ({ stripPrefix, addPrefix }: OriginOptions): boolean =>
  (prefixOf('stripPrefix', stripPrefix) ?? prefixOf('addPrefix', addPrefix)) !== undefined

function checkCollecting(maxBodyBytes: number, protocol: string | undefined): void {
  whole('collectBodyBytes', maxBodyBytes, 1)
  if (protocol !== undefined)
    throw optionInvalid('collectBodyBytes and protocol exclude each other: HTTP/2 has no chunked bodies.')
}

function signedOnly(origin: Origin, webhook: VerifySettings): Origin {
  return judged(origin, () => signatureJudge(webhook))
}

async function signatureJudge(settings: VerifySettings): Promise<Judge> {
  const { verdictOf } = await import('../../signatures/signatures.ts')
  const { provider, secrets, toleranceS, maxBodyBytes } = settings
  return {
    readsBody: true,
    maxBodyBytes,
    matches: target => settings.matches(target),
    refusalOf(head, body) {
      const header = (name: string) => head.header(name)
      const now = receivedAt(header, settings)
      const verdict = verdictOf(provider, secrets, { header, body }, { now, toleranceS })
      if (verdict.isValid) return undefined
      return { code: 'SIGNATURE_INVALID', detail: `The webhook is refused: ${verdict.reason}.` }
    },
  }
}

function filterOf({ filter, protocol = 'http/1.1' }: HttpTunnelOptions = {}) {
  if (filter === undefined) return undefined
  const judge = filterJudge(filter)
  if (protocol === 'http/1.1') return judge
  throw optionInvalid('filter and protocol exclude each other: filters read HTTP/1.1.')
}

/** Returns the origin with a judge. The judge's code is loaded with the first connection. */
function judged(origin: Origin, judge: () => Judge | Promise<Judge>): Origin {
  return {
    label: origin.label,
    url: origin.url,
    async connect(handler: SocketHandler): Promise<Socket> {
      const { connectJudged } = await import('./judged-connection.ts')
      return connectJudged(origin, handler, await judge())
    },
  }
}

/** Returns a judge that accepts every request. */
export function lengthJudge(maxBodyBytes: number): Judge {
  return {
    readsBody: true,
    maxBodyBytes,
    matches: (_target, head) => head.body === 'chunked',
    refusalOf: () => undefined,
    rewritten: (head, body) => [withLength(head, body.length), body],
  }
}

/** The names of the lines that describe chunks. */
const CHUNKED = ['transfer-encoding', 'trailer']

function withLength({ bytes, fields, start, end }: RequestHead, length: number): Uint8Array {
  const pieces: Uint8Array[] = []
  let from = start
  for (let line = 0; line < fields.count; line++) {
    if (!CHUNKED.some(name => fields.isNamed(line, name))) continue
    pieces.push(bytes.subarray(from, fields.lineStart(line)))
    from = fields.lineEnd(line)
  }
  return joined([...pieces, bytes.subarray(from, end - 2), ascii(`Content-Length: ${length}\r\n\r\n`)])
}
