// The provider's id of a webhook, and which requests are not webhooks.

import type { RequestHead } from '../../http/head.ts'

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
