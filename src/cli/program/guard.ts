// The flags of a guard: the common access rules and sign-in methods. A configuration file has all of them.

import { Option } from 'commander'
import { parseDuration } from '../../config/quantity.ts'
import { TunnelError } from '../../errors.ts'
import type { GuardOptions } from '../../guard.ts'
import type { Flags } from '../settings/flags.ts'
import { under } from './help.ts'
import { readAuthority, repeatable } from './values.ts'

/** Access rules, for tunnels of every kind. */
export const ruleOptions = (): Option[] =>
  under('Access control:', [
    repeatable(
      '--allow <addresses>',
      'accept visitors from this address or range only, such as 10.0.0.0/8; repeatable',
    ).env('TUNNEL_ALLOW'),
    repeatable(
      '--deny <addresses>',
      'refuse visitors from this address or range, even if --allow matches; repeatable',
    ).env('TUNNEL_DENY'),
    new Option('--rate <limit>', 'limit requests or connections per visitor address, such as 60/1m').env(
      'TUNNEL_RATE',
    ),
    new Option('--ttl <time>', 'refuse all visitors after this time, such as 2h').env('TUNNEL_TTL'),
  ])

/** Sign-in methods and access rules, for HTTP tunnels. A visitor needs one of the methods, and has to satisfy all rules. */
export const accessOptions = (): Option[] => [
  ...under('Access control:', [
    new Option('--password <password>', 'ask visitors for this password; prefer TUNNEL_PASSWORD').env(
      'TUNNEL_PASSWORD',
    ),
    repeatable('--bearer <token>', 'accept requests with this bearer token; repeatable').env('TUNNEL_BEARER'),
    new Option('--visitor-ca <file>', 'accept visitors whose certificate these authorities signed, PEM').env(
      'TUNNEL_VISITOR_CA',
    ),
    new Option('--links', 'accept visitors with a link of "localtunnels link <name>"').env('TUNNEL_LINKS'),
  ]),
  ...ruleOptions(),
]

/** `undefined`: none of them was given. Throws `OPTION_INVALID`. */
export function guardSettings(flags: Flags): GuardOptions | undefined {
  const password = flags.text('password')
  const [allow, deny, bearer] = [flags.list('allow'), flags.list('deny'), flags.list('bearer')]
  const rate = rateOf(flags)
  const visitorCa = flags.text('visitorCa')
  const ttlMs = ttlOf(flags)
  const guard: GuardOptions = {
    ...(allow.length > 0 && { allow }),
    ...(deny.length > 0 && { deny }),
    ...(rate && { rate }),
    ...(ttlMs !== undefined && { ttlMs }),
    // An empty variable is one that is not set.
    ...(password && { password }),
    ...(bearer.length > 0 && { bearer }),
    ...(visitorCa && { certificate: { ca: readAuthority(visitorCa, flags.label('visitorCa')) } }),
    ...(flags.isOn('links') && { links: true }),
  }
  return Object.keys(guard).length > 0 ? guard : undefined
}

/** Throws `OPTION_INVALID`. */
export function rateOf(flags: Flags): GuardOptions['rate'] {
  const text = flags.text('rate')
  if (text === undefined || text === '') return undefined
  const [, limit, window = ''] = /^(\d{1,7})\/(.+)$/.exec(text) ?? []
  const windowMs = parseDuration(/^\d/.test(window) ? window : `1${window}`)
  if (limit !== undefined && windowMs !== undefined) return { limit: Number(limit), windowMs }
  throw new TunnelError('OPTION_INVALID', `${flags.label('rate')} "${text}" is not a rate, such as 60/1m.`)
}

function ttlOf(flags: Flags): number | undefined {
  const text = flags.text('ttl')
  return text === undefined || text === '' ? undefined : timeOf(text, flags.label('ttl'))
}

/** Throws `OPTION_INVALID`. */
export function timeOf(text: string, label: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0) return ms
  throw new TunnelError('OPTION_INVALID', `${label} "${text}" is not a time, such as 30m or 2h.`)
}
