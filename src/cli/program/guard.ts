// The flags of a guard: the common access rules and sign-in methods. A configuration file has all of them.

import { optionInvalid } from '../../errors.ts'
import type { GuardOptions } from '../../guard.ts'
import type { Flags } from '../settings/flags.ts'
import { duration, type FlagTexts, given, readAuthority, timeOf } from './values.ts'

/** The flags of access rules, for tunnels of every kind. */
export const RULE_FLAGS: FlagTexts = {
  'Access control:': {
    '--allow <addresses>':
      'accept visitors from this address, range or country only, such as 10.0.0.0/8 or country:DE; repeatable',
    '--deny <addresses>':
      'refuse visitors from this address, range or country, even if --allow matches; repeatable',
    '--rate <limit>': 'limit requests or connections per visitor address, such as 60/1m',
    '--ttl <time>': 'refuse all visitors after this time, such as 2h',
  },
}

/**
 * The flags of sign-in methods and access rules for HTTP tunnels. A visitor needs one of the methods, and must satisfy all rules.
 */
export const ACCESS_FLAGS: FlagTexts = {
  'Access control:': {
    '--password <password>': 'ask visitors for this password; prefer TUNNEL_PASSWORD',
    '--bearer <token>': 'accept requests with this bearer token; repeatable',
    '--bearer-header <name>': 'header with that token, such as X-Api-Key (default: Authorization: Bearer)',
    '--visitor-ca <file>': 'accept visitors whose certificate these authorities signed, PEM',
    '--links': 'accept visitors with a link of "localtunnels link <name>"',
    ...RULE_FLAGS['Access control:'],
  },
}

/** Returns the guard. `undefined` if no flag was given. Throws `OPTION_INVALID`. */
export function guardSettings(flags: Flags): GuardOptions | undefined {
  const visitorCa = flags.text('visitorCa')
  const guard: GuardOptions = given({
    allow: flags.list('allow'),
    deny: flags.list('deny'),
    rate: rateOf(flags),
    ttlMs: duration(flags, 'ttl'),
    // An empty variable counts as not set.
    password: flags.text('password') || undefined,
    bearer: flags.list('bearer'),
    bearerHeader: flags.text('bearerHeader') || undefined,
    certificate: visitorCa ? { ca: readAuthority(visitorCa, flags.label('visitorCa')) } : undefined,
    links: flags.isOn('links'),
  })
  return Object.keys(guard).length > 0 ? guard : undefined
}

/** Returns the rate. Throws `OPTION_INVALID`. */
export function rateOf(flags: Flags): GuardOptions['rate'] {
  const text = flags.text('rate')
  if (text === undefined || text === '') return undefined
  const [, limit, window = ''] = /^(\d{1,7})\/(.+)$/.exec(text) ?? []
  const label = flags.label('rate')
  if (limit !== undefined)
    return { limit: Number(limit), windowMs: timeOf(/^\d/.test(window) ? window : `1${window}`, label) }
  throw optionInvalid(`${label} "${text}" is not a rate, such as 60/1m.`)
}
