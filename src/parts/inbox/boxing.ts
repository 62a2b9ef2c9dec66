// Stores a webhook whose client is away: takes the place of an app's exchange, reads the request completely, stores
// it, and acknowledges it.

import type { ErrorCode } from '../../errors.ts'
import { bodyOf } from '../../http/body.ts'
import { reasonOf } from '../../http/error-answer.ts'
import { CONNECTION_NAMES } from '../../http/field-names.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Box, Keeping, NewWebhook } from '../../inbox.ts'
import type { KeptBodies } from '../../kept-bodies.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../../server/contracts/upstream.ts'
import { isLoopback } from '../../server/settings/address-counter.ts'
import { networkOf } from '../../wire/ip-address.ts'
import { withoutMarks } from './marks.ts'

/** The operations that store webhooks. */
export interface BoxingHost {
  readonly bodies: KeptBodies
  keep(webhook: NewWebhook): Promise<Keeping | Error>
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')
/** The headers that concern this connection, or that the delivery writes again. */
const NOT_KEPT: ReadonlySet<string> = new Set(CONNECTION_NAMES)

export class Boxing implements Upstream {
  readonly wire = 'streams'
  readonly inFlight = 0
  readonly #host: BoxingHost
  readonly #box: Box
  readonly #address: string

  constructor(host: BoxingHost, box: Box, address: string) {
    this.#host = host
    this.#box = box
    this.#address = address
  }

  begin(visit: Visit): Exchange {
    const { head } = visit
    withoutMarks(head)
    const { bodies } = this.#host
    if (head.contentLength > bodies.maxBodyBytes) {
      visit.fail('BODY_TOO_LARGE')
      return DEAD_EXCHANGE
    }
    let isOver = false
    const over = (): void => {
      isOver = true
      kept.drop()
    }
    const fail = (code: ErrorCode | 'full'): void => {
      if (isOver) return
      over()
      visit.fail(code === 'full' ? 'INBOX_FULL' : code)
    }
    const kept = bodies.begin(this.#box.owner, this.#address, fail)
    const collect = (piece: Uint8Array, start: number, end: number): void => {
      const code = isOver ? undefined : kept.keep(piece, start, end)
      if (code !== undefined) fail(code)
    }
    const framer = bodyOf(head, collect)
    if (head.expectsContinue) visit.write(CONTINUE)
    return {
      body: piece => {
        if (!isOver && framer.feed(piece, 0, piece.length) < 0) fail('BAD_REQUEST')
      },
      bodyEnded: () => {
        if (isOver) return
        kept.complete()
        const body = Buffer.concat(kept.pieces)
        const fields = fieldsOf(body)
        // The provider asks again while the app is there.
        if (isChallenge(fields)) return fail('CLIENT_RECONNECTING')
        void this.#host.keep(this.#webhookOf(head, fields, body)).then(outcome => {
          if (isOver) return
          over()
          if (outcome instanceof Error) visit.fail('INBOX_FULL')
          else if (outcome === 'full') visit.fail('INBOX_FULL')
          else this.#acknowledge(visit)
        })
      },
      drained() {},
      abandoned() {
        if (!isOver) over()
      },
    }
  }

  #webhookOf(head: RequestHead, fields: Readonly<Record<string, unknown>>, body: Uint8Array): NewWebhook {
    const { name, owner } = this.#box
    const sender = networkOf(this.#address)
    const nominated = new Set(
      head
        .headers('connection')
        .flatMap(value => value.split(','))
        .map(value => value.trim().toLowerCase()),
    )
    let text = `${head.method} ${head.path} HTTP/1.1\r\n`
    for (const [field, value] of head.headerList()) {
      const lower = field.toLowerCase()
      if (!NOT_KEPT.has(lower) && !nominated.has(lower)) text += `${field}: ${value}\r\n`
    }
    return {
      name,
      owner,
      path: head.path.split('?', 1)[0] ?? '/',
      key: providerIdOf(head, fields),
      head: text,
      body,
      address: this.#address,
      // The loopback may be a proxy, whose webhooks have many senders.
      sender: isLoopback(sender) ? '' : sender,
      receivedMs: Date.now(),
    }
  }

  #acknowledge(visit: Visit): void {
    const status = this.#box.status
    const length = status === 204 ? '' : 'Content-Length: 0\r\n'
    const connection = visit.keepsAlive ? 'keep-alive' : 'close'
    visit.answered(status)
    visit.write(
      Buffer.from(
        `HTTP/1.1 ${status} ${reasonOf(status)}\r\n${length}X-Localtunnels-Inbox: kept\r\nConnection: ${connection}\r\n\r\n`,
      ),
    )
    visit.done(visit.keepsAlive)
  }
}

/** The headers with ids of Standard Webhooks, GitHub, Shopify, GitLab and Twilio's event streams. */
const ID_HEADERS = [
  'webhook-id',
  'svix-id',
  'x-github-delivery',
  'x-shopify-webhook-id',
  'shopify-webhook-id',
  'x-gitlab-event-uuid',
] as const
/** The maximum length of an id. A webhook with a longer one is stored each time. */
const MAX_ID_CHARS = 200

/** Returns the provider's id. `undefined` if there is none. Stripe and Slack have theirs in the body. */
export function providerIdOf(
  head: RequestHead,
  fields: Readonly<Record<string, unknown>>,
): string | undefined {
  for (const name of ID_HEADERS) {
    const id = head.header(name)
    if (id !== undefined && id !== '' && id.length <= MAX_ID_CHARS) return `${name} ${id}`
  }
  const isStripe = head.header('stripe-signature') !== undefined
  const isSlack = head.header('x-slack-signature') !== undefined
  const id = isStripe ? fields.id : isSlack ? fields.event_id : undefined
  return typeof id === 'string' && id.length <= MAX_ID_CHARS
    ? `${isStripe ? 'stripe' : 'slack'} ${id}`
    : undefined
}

/** Whether the provider asks for a response that only the app can give, such as Slack's `challenge`. */
export function isChallenge(fields: Readonly<Record<string, unknown>>): boolean {
  return fields.type === 'url_verification' || (typeof fields.challenge === 'string' && !('event' in fields))
}

/** Returns the fields of a JSON object; empty for any other body. */
export function fieldsOf(body: Uint8Array): Readonly<Record<string, unknown>> {
  if (body[0] !== 0x7b) return {}
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
