// The signature schemes of webhook providers: each checks a request, and signs one as the provider would.

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Provider, Verdict } from './verify-settings.ts'

/** The signed parts of a request. */
export interface Signed {
  /** Returns the value of a header by its lower-case name. `undefined` if it is missing. */
  header(name: string): string | undefined
  readonly body: Uint8Array
}

/** The secret and clock of a signature. */
export interface Signing {
  readonly secret: string
  /** The time in seconds since 1970. */
  readonly now: number
}

/** Headers that replace those of the same name. */
export type SignatureHeaders = Readonly<Record<string, string>>

interface Scheme {
  /** Checks a signature. Returns the fault; `undefined` if it is valid. `toleranceS`: its maximum age in seconds. */
  check(request: Signed, signing: Signing, toleranceS: number): string | undefined
  sign(request: Signed, signing: Signing): SignatureHeaders
}

const UNSIGNED = 'no signature'
const OLD = 'too old'
const FUTURE = 'from the future'
const WRONG = 'does not match'

/** The headers of id, time and signature. */
const STANDARD_NAMES = [
  ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  ['svix-id', 'svix-timestamp', 'svix-signature'],
] as const
/** The headers of webhooks, and of Shopify's events. */
const SHOPIFY_NAMES = ['x-shopify-hmac-sha256', 'shopify-hmac-sha256'] as const

const SCHEMES: Readonly<Record<Provider, Scheme>> = {
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  // Svix, and Clerk with it, have other names: https://docs.svix.com/receiving/verifying-payloads/how-manual
  standard: {
    check(request, { secret, now }, toleranceS) {
      let isSigned = false
      for (const names of STANDARD_NAMES) {
        const [id, time, shown] = names.map(name => request.header(name))
        if ((id ?? time ?? shown) === undefined) continue
        // An app that reads the other names must not find unsigned values.
        if (id === undefined || time === undefined || shown === undefined) return UNSIGNED
        const expected = standardSignature(secret, id, time, request.body)
        const given = shown.split(' ').filter(one => one.startsWith('v1,'))
        if (!given.some(one => isSame(one.slice(3), expected))) return WRONG
        const fault = ageFault(time, now, toleranceS)
        if (fault !== undefined) return fault
        isSigned = true
      }
      return isSigned ? undefined : UNSIGNED
    },
    sign(request, { secret, now }) {
      const came = STANDARD_NAMES.filter(([id]) => request.header(id) !== undefined)
      const all = (came.length > 0 ? came : STANDARD_NAMES.slice(0, 1)).flatMap(
        ([idName, timeName, name]) => {
          const id = request.header(idName) ?? `msg_${now}`
          const signature = standardSignature(secret, id, `${now}`, request.body)
          return [
            [idName, id],
            [timeName, `${now}`],
            [name, `v1,${signature}`],
          ]
        },
      )
      return Object.fromEntries(all)
    },
  },
  // https://docs.stripe.com/webhooks#verify-manually
  stripe: {
    check(request, { secret, now }, toleranceS) {
      const fields = (request.header('stripe-signature') ?? '').split(',').map(one => one.split('=', 2))
      const time = fields.find(([name]) => name === 't')?.[1]
      const given = fields.flatMap(([name, value]) => (name === 'v1' && value ? [value] : []))
      if (time === undefined || given.length === 0) return UNSIGNED
      const expected = hmac(secret, 'hex', `${time}.`, request.body)
      if (!given.some(one => isSame(one, expected))) return WRONG
      return ageFault(time, now, toleranceS)
    },
    sign(request, { secret, now }) {
      const signature = hmac(secret, 'hex', `${now}.`, request.body)
      return { 'stripe-signature': `t=${now},v1=${signature}` }
    },
  },
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  github: {
    check(request, { secret }) {
      const shown = request.header('x-hub-signature-256')
      if (shown === undefined) return UNSIGNED
      return isSame(shown, `sha256=${hmac(secret, 'hex', request.body)}`) ? undefined : WRONG
    },
    sign(request, { secret }) {
      return { 'x-hub-signature-256': `sha256=${hmac(secret, 'hex', request.body)}` }
    },
  },
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  slack: {
    check(request, { secret, now }, toleranceS) {
      const [time, shown] = [request.header('x-slack-request-timestamp'), request.header('x-slack-signature')]
      if (time === undefined || shown === undefined) return UNSIGNED
      if (!isSame(shown, `v0=${hmac(secret, 'hex', `v0:${time}:`, request.body)}`)) return WRONG
      return ageFault(time, now, toleranceS)
    },
    sign(request, { secret, now }) {
      const signature = hmac(secret, 'hex', `v0:${now}:`, request.body)
      return { 'x-slack-request-timestamp': `${now}`, 'x-slack-signature': `v0=${signature}` }
    },
  },
  // https://shopify.dev/docs/apps/build/webhooks/subscribe/https
  shopify: {
    check(request, { secret }) {
      const given = SHOPIFY_NAMES.flatMap(name => request.header(name) ?? [])
      if (given.length === 0) return UNSIGNED
      const expected = hmac(secret, 'base64', request.body)
      return given.every(one => isSame(one, expected)) ? undefined : WRONG
    },
    sign(request, { secret }) {
      const came = SHOPIFY_NAMES.filter(name => request.header(name) !== undefined)
      const signature = hmac(secret, 'base64', request.body)
      return Object.fromEntries(
        (came.length > 0 ? came : SHOPIFY_NAMES.slice(0, 1)).map(name => [name, signature]),
      )
    },
  },
}

/** Checks with each secret: during a change of secrets, both are valid. */
export function verdictOf(
  provider: Provider,
  secrets: readonly string[],
  request: Signed,
  { now, toleranceS }: { readonly now: number; readonly toleranceS: number },
): Verdict {
  let reason: string | undefined = UNSIGNED
  for (const secret of secrets) {
    const fault = SCHEMES[provider].check(request, { secret, now }, toleranceS)
    if (fault === undefined) return { provider, isValid: true }
    // The age of a valid signature says more than that another secret does not match.
    if (reason === UNSIGNED || reason === WRONG) reason = fault
  }
  return { provider, isValid: false, reason }
}

export function signed(provider: Provider, request: Signed, signing: Signing): SignatureHeaders {
  return SCHEMES[provider].sign(request, signing)
}

function standardSignature(secret: string, id: string, time: string, body: Uint8Array): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return hmac(key, 'base64', `${id}.${time}.`, body)
}

function hmac(
  key: string | Uint8Array,
  encoding: 'hex' | 'base64',
  ...parts: readonly (string | Uint8Array)[]
): string {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac.digest(encoding)
}

/** Whether two texts are equal. The time does not depend on the difference. */
function isSame(shown: string, expected: string): boolean {
  const [a, b] = [Buffer.from(shown), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function ageFault(time: string, now: number, toleranceS: number): string | undefined {
  const seconds = /^\d{1,12}$/.test(time) ? Number(time) : Number.NaN
  if (Number.isNaN(seconds)) return WRONG
  if (toleranceS === 0) return undefined
  if (now - seconds > toleranceS) return OLD
  return seconds - now > toleranceS ? FUTURE : undefined
}
