// What a service says of the webhooks that it gets.

import { TunnelError } from '../../errors.ts'
import type { PathWaysIn, WebhookRule } from '../../guard.ts'
import { hasOneReading, readingsOf } from '../../http/path-readings.ts'

export const PROVIDERS = ['standard', 'stripe', 'github', 'slack', 'shopify'] as const
export type Provider = (typeof PROVIDERS)[number]

/** What checking a webhook's signature came to. */
export interface Verdict {
  readonly provider: Provider
  readonly isValid: boolean
  /** Why not, in a few words: `no signature`, `too old`, `from the future`, `does not match`, `the body was cut`. */
  readonly reason?: string
}

export interface VerifyOptions extends WebhookRule {
  /** The paths that webhooks come to; `*` at the end stands for anything. Default `/*`. At most 32. */
  readonly paths?: readonly string[]
  /** `true`: a request to these paths without a valid signature is answered with 401 and does not reach the app. Default `false`. */
  readonly require?: boolean
}

export interface VerifySettings {
  readonly provider: Provider
  readonly secrets: readonly string[]
  readonly isRequired: boolean
  readonly toleranceS: number
  readonly maxBodyBytes: number
  /** Webhooks may have waited on the server, which says since when: they were young enough if they were then. */
  readonly mayWait: boolean
  /** Whether webhooks come to this path, which may have a query. */
  matches(path: string): boolean
}

const MAX_PATHS = 32
const MAX_SECRETS = 8
const MAX_BODY_BYTES = 1_048_576
/** Bodies of several connections may wait at once. */
const MOST_BODY_BYTES = 67_108_864

/** Throws `OPTION_INVALID` for what cannot be used. */
export function verifySettings(options: VerifyOptions, mayWait = false): VerifySettings {
  const { provider, secret, paths = ['/*'], toleranceSeconds = 300, maxBodyBytes = MAX_BODY_BYTES } = options
  if (!PROVIDERS.includes(provider)) throw invalid(`provider must be one of ${PROVIDERS.join(', ')}.`)
  const secrets = typeof secret === 'string' ? [secret] : secret
  if (secrets.length === 0 || secrets.length > MAX_SECRETS || secrets.some(one => one === ''))
    throw invalid(`secret must be 1 to ${MAX_SECRETS} secrets, none of them empty.`)
  if (provider === 'standard' && !secrets.every(one => /^(?:whsec_)?[A-Za-z0-9+/]+={0,2}$/.test(one)))
    throw invalid('secret of Standard Webhooks is base64, with whsec_ in front or without.')
  if (paths.length === 0 || paths.length > MAX_PATHS || !paths.every(path => /^\/[^*?#\s]*\*?$/.test(path)))
    throw invalid(`paths must be 1 to ${MAX_PATHS} paths such as /hooks/stripe or /hooks/*.`)
  if (!(Number.isInteger(toleranceSeconds) && toleranceSeconds >= 0 && toleranceSeconds <= 86_400))
    throw invalid('toleranceSeconds must be a whole number from 0 to 86,400.')
  if (!(Number.isInteger(maxBodyBytes) && maxBodyBytes >= 1 && maxBodyBytes <= MOST_BODY_BYTES))
    throw invalid(`maxBodyBytes must be a whole number from 1 to ${MOST_BODY_BYTES}.`)
  const patterns = paths.map(path => (path.endsWith('*') ? path.toLowerCase() : pathOf(path)))
  return {
    provider,
    secrets,
    isRequired: options.require ?? false,
    toleranceS: toleranceSeconds,
    mayWait,
    maxBodyBytes,
    matches(path) {
      const raw = path.split(/[?#]/, 1)[0] ?? ''
      // One reading is enough: an app that takes it for a webhook must not get it unchecked.
      const readings = hasOneReading(raw) ? [] : readingsOf(raw)
      if (readings === undefined) return true
      return [raw, ...readings]
        .map(pathOf)
        .some(plain =>
          patterns.some(one =>
            one.endsWith('*') ? `${plain}/`.startsWith(one.slice(0, -1)) : plain === one,
          ),
        )
    },
  }
}

/** What a guard says of webhooks, by path. Throws `OPTION_INVALID`. */
export function guardedWebhooks(
  paths: Readonly<Record<string, PathWaysIn>>,
  mayWait: boolean,
): readonly VerifySettings[] {
  return Object.entries(paths).flatMap(([path, { webhook }]) =>
    webhook === undefined
      ? []
      : verifySettings({ ...webhook, paths: [`${path.replace(/\/+$/, '')}/*`], require: true }, mayWait),
  )
}

/** When the webhook came to the server, in seconds since 1970. The server takes the header out of what visitors send. */
export function receivedAt(
  header: (name: string) => string | undefined,
  { mayWait }: VerifySettings,
): number {
  const now = Date.now()
  const received = mayWait ? Date.parse(header('x-localtunnels-received') ?? '') : Number.NaN
  return Math.floor((Number.isNaN(received) ? now : Math.min(now, received)) / 1_000)
}

/**
 * The path as an app may understand it, however it is spelled: one that another spelling leads around the check would be no
 * check. Escapes are decoded once, doubled slashes and dots resolved; neither case nor a slash at the end makes a difference.
 */
function pathOf(target: string): string {
  const raw = target.split(/[?#]/, 1)[0] ?? ''
  let decoded = raw
  try {
    // Readings have bytes of letters in them.
    decoded = decodeURIComponent(raw.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16)}`))
  } catch {
    // Not UTF-8: it stays as it is.
  }
  const parts: string[] = []
  for (const part of decoded.toLowerCase().replace(/\\/g, '/').split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

function invalid(what: string): TunnelError {
  return new TunnelError('OPTION_INVALID', `verify: ${what}`)
}
