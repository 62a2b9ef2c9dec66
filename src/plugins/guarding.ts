// The guards that clients can ask for, with the access rules and sign-in methods of localtunnels.

import type { Countries } from '../countries.ts'
import { checkNames, type Names } from '../option-names.ts'
import type { GuardMaker } from '../plugin.ts'
import type { UsedLinks } from '../store.ts'

/** The settings of the operator for the guards of all tunnels. */
export interface GuardingOptions {
  /**
   * Issuers whose tokens guards may ask for with `jwt`. Only these are asked for keys: a client must not make the server send
   * requests somewhere else. Default none.
   */
  readonly issuers?: readonly Issuer[]
  /** Issuers at which visitors can sign in with `login`. Their tokens are good for `jwt` as well. Default none. */
  readonly logins?: readonly LoginProvider[]
  /**
   * Remembers links that work once and were used, across restarts of the server: `openUsedLinks(path)` of this package, or a function that
   * opens it for the first tunnel with links. Default: in memory, until the server ends.
   */
  readonly usedLinks?: UsedLinks | (() => Promise<UsedLinks | undefined>)
  /**
   * Knows the countries of addresses, for `country:DE` in `allow` and `deny`: `await openCountries(path)`. Default: guards with countries
   * are refused with `GUARD_UNAVAILABLE`.
   */
  readonly countries?: Countries
}

/** An issuer whose tokens guards may ask for. */
export interface Issuer {
  /** The URL, as in the tokens' `iss`. */
  readonly issuer: string
  /** The URL of its keys. Default: as its `/.well-known/openid-configuration` says. */
  readonly jwksUrl?: string
  /**
   * The time after a fetch in which an unknown key is refused without another fetch, so that strangers cannot cause fetches at
   * will. Milliseconds. Default 30,000. `0`: each has them fetched.
   */
  readonly keyCooldownMs?: number
}

/** An issuer at which this server is known. */
export interface LoginProvider {
  /** The URL of the issuer: https, or http on this machine. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** The scope to request. Default `openid email`. */
  readonly scope?: string
}

const NAMES: Names<GuardingOptions> = { issuers: true, logins: true, usedLinks: true, countries: true }

/**
 * The guards that clients can ask for: `new TunnelServer({ guarding: guarding() })`. A server without `guarding` refuses
 * registrations with a guard.
 */
export function guarding(options: GuardingOptions = {}): GuardMaker {
  checkNames(options, NAMES, 'guarding()')
  let making: Promise<GuardMaker> | undefined
  let maker: GuardMaker | undefined
  return (definition, tunnel) => {
    // Runs at once if possible, so that its time counts for the client, which waits for its turn if it asks for many.
    if (maker !== undefined) return maker(definition, tunnel)
    // Loaded with the first guard, because a server without guards does not need it.
    making ??= import('./making.ts').then(({ makerOf }) => (maker = makerOf(options)))
    return making.then(make => make(definition, tunnel))
  }
}
