// The settings for a service's webhooks, from its options.

import type { HttpTunnelOptions, VerifyOptions } from '../client/options.ts'
import { optionInvalid, type TunnelError } from '../errors.ts'
import type { PathSignInMethods } from '../guard.ts'
import { PathRules, pathMatcher } from '../paths/path-rules.ts'

export const PROVIDERS = ['standard', 'stripe', 'github', 'slack', 'shopify'] as const
export type Provider = (typeof PROVIDERS)[number]

/** The result of the check of a webhook's signature. */
export interface Verdict {
  readonly provider: Provider
  readonly isValid: boolean
  /** The reason, in a few words: `no signature`, `too old`, `from the future`, `does not match`, `the body was cut`. */
  readonly reason?: string
}

export interface VerifySettings {
  readonly provider: Provider
  readonly secrets: readonly string[]
  readonly isRequired: boolean
  readonly toleranceS: number
  readonly maxBodyBytes: number
  /** Whether webhooks may have waited on the server, which says since when. Their age counts from then. */
  readonly mayWait: boolean
  /** Whether webhooks come to this path, which may have a query. */
  matches(path: string): boolean
}

const MAX_PATHS = 32
const MAX_SECRETS = 8
const MAX_BODY_BYTES = 1_048_576
/** The maximum size of a body, because those of several connections may wait at once. */
const MOST_BODY_BYTES = 67_108_864

/** Checks the options. Throws `OPTION_INVALID`. */
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
  const matches = pathMatcher(paths)
  return {
    provider,
    secrets,
    isRequired: options.require ?? false,
    toleranceS: toleranceSeconds,
    mayWait,
    maxBodyBytes,
    // An app that may take it for a webhook must not get it unchecked.
    matches: target => matches(target) !== false,
  }
}

/** Returns the webhooks of an HTTP tunnel and of its guard. If several are for a path, the first counts. */
export function webhooksOf({ verify, guard, inbox }: HttpTunnelOptions = {}): readonly VerifySettings[] {
  const mayWait = inbox !== undefined
  return [
    ...(verify === undefined ? [] : [verifySettings(verify, mayWait)]),
    ...guardedWebhooks(guard?.paths ?? {}, mayWait),
  ]
}

/** The webhooks that a guard names, by path. Throws `OPTION_INVALID`, also for a text that is not a path. */
export function guardedWebhooks(
  paths: Readonly<Record<string, PathSignInMethods>>,
  mayWait: boolean,
): readonly VerifySettings[] {
  const all = Object.entries(paths).flatMap(([path, { webhook }]) =>
    webhook === undefined ? [] : [[path, verifySettings({ ...webhook, require: true }, mayWait)] as const],
  )
  // The server uses the same class for these rules: a path that it could not decide is refused here too.
  const rules = new PathRules<VerifySettings | 'other'>('other', Object.fromEntries(all))
  return all.map(([, settings]) => ({
    ...settings,
    matches(target) {
      const rule = rules.ruleOf(target)
      return rule === undefined || rule === settings
    },
  }))
}

/**
 * Returns when the webhook came to the server, in seconds since 1970. For a tunnel with an inbox, the server removes
 * that header from visitors' requests.
 */
export function receivedAt(
  header: (name: string) => string | undefined,
  { mayWait }: VerifySettings,
): number {
  const now = Date.now()
  const received = mayWait ? Date.parse(header('x-localtunnels-received') ?? '') : Number.NaN
  return Math.floor((Number.isNaN(received) ? now : Math.min(now, received)) / 1_000)
}

function invalid(what: string): TunnelError {
  return optionInvalid(`verify: ${what}`)
}
