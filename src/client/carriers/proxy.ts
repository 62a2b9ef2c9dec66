// Reads and checks the proxy to use, from an option or the environment.

import { optionInvalid, TunnelError } from '../../errors.ts'
import type { Address } from '../../socket.ts'
import { bypassList } from '../proxies/bypass.ts'

export interface ProxySettings {
  /** The scheme. With `socks5` the client resolves the server's name; with `socks5h` the proxy does. */
  readonly scheme: 'http' | 'https' | 'socks5' | 'socks5h'
  readonly address: Address
  readonly login: { readonly user: string; readonly password: string } | undefined
  /** The URL without the login, for messages. */
  readonly label: string
}

/**
 * Returns the proxy for an address. `undefined` for none. Throws `OPTION_INVALID` if the environment variable
 * contains no valid proxy.
 */
export type ChooseProxy = (address: Address) => ProxySettings | undefined

export interface ProxyOptions {
  /** The proxy's URL. `false` or empty: none. Absent: that of the environment. */
  readonly proxy?: string | false | undefined
  /** The PEM text of an authority to trust for the certificate of an https proxy. */
  readonly ca?: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** The ports of `socks5://proxy` and similar URLs without a port. */
const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080, socks5h: 1080 } as const
/** The maximum length of a field: RFC 1929 has one byte for it. */
const MAX_SOCKS_FIELD_BYTES = 255

/** Reads the option or, without one, the environment in the same way as curl. Throws `OPTION_INVALID`. */
export function proxyChooser({ proxy, ca }: ProxyOptions, environment: Environment): ChooseProxy {
  if (proxy === false || proxy === '') return () => undefined
  if (proxy !== undefined) {
    const given = parseProxy(proxy, 'proxy', ca)
    return () => given
  }
  const isBypassed = bypassList(environment.no_proxy || environment.NO_PROXY || '')
  return address => {
    const variable = variableFor(address, environment)
    if (variable === undefined || isBypassed(address)) return undefined
    return parseProxy(environment[variable] ?? '', variable, ca)
  }
}

/** Returns the environment variable for an address. Lower case wins, and an empty variable counts as not set. */
function variableFor(address: Address, environment: Environment): string | undefined {
  const scheme = address.tls === undefined ? 'http' : 'https'
  // HTTP_PROXY in a CGI process is the `Proxy` header of a stranger's request (CVE-2016-5385).
  const isForeign = scheme === 'http' && environment.REQUEST_METHOD !== undefined
  const names = [`${scheme}_proxy`, ...(isForeign ? [] : [`${scheme.toUpperCase()}_PROXY`])]
  return [...names, 'all_proxy', 'ALL_PROXY'].find(name => environment[name])
}

/** Parses the URL of a proxy; without a scheme, it is `http`. `source` names its place in errors, which never quote the URL. */
export function parseProxy(text: string, source: string, ca?: string): ProxySettings {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  const invalid = (why: string) => optionInvalid(`${source} ${why}.`)
  if (!URL.canParse(url) || new URL(url).hostname === '') {
    throw invalid('is not the URL of a proxy; special characters of user and password are written as %40')
  }
  const { protocol, hostname, port, username, password } = new URL(url)
  const scheme = SCHEMES.find(one => `${one}:` === protocol)
  if (scheme === undefined) {
    throw invalid(`names a ${protocol}// proxy; known are http, https, socks5 and socks5h`)
  }
  const isSecure = scheme === 'https'
  const number = port === '' ? DEFAULT_PORTS[scheme] : Number(port)
  return {
    scheme,
    address: {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: number,
      ...(isSecure && { tls: ca === undefined ? {} : { ca } }),
    },
    login: loginOf(username, password, scheme, invalid),
    label: `${scheme}://${hostname}:${number}`,
  }
}

const SCHEMES = ['http', 'https', 'socks5', 'socks5h'] as const

function loginOf(
  encodedUser: string,
  encodedPassword: string,
  scheme: ProxySettings['scheme'],
  invalid: (why: string) => TunnelError,
): ProxySettings['login'] {
  if (encodedUser === '' && encodedPassword === '') return undefined
  let user: string
  let password: string
  try {
    user = decodeURIComponent(encodedUser)
    password = decodeURIComponent(encodedPassword)
  } catch {
    throw invalid('has a user or password with a % that begins no escape; write it as %25') // the message quotes no part of the URL
  }
  if (scheme.startsWith('socks')) {
    const isLong = (one: string) => Buffer.byteLength(one) > MAX_SOCKS_FIELD_BYTES
    if (user === '' || isLong(user) || isLong(password)) {
      throw invalid('has a user or password of a length that SOCKS5 cannot carry (1 to 255 bytes)')
    }
  } else if (user.includes(':')) throw invalid('has a user with a colon, which Basic cannot carry')
  return { user, password }
}

/** Returns the error for a proxy that works but cannot reach the server. */
export function cannotReach({ label }: ProxySettings, why: string): TunnelError {
  return new TunnelError('SERVER_UNREACHABLE', `The proxy ${label} cannot reach the tunnel server: ${why}.`)
}

export function notAProxy({ label, scheme }: ProxySettings, why: string): TunnelError {
  const kind = scheme.startsWith('http') ? 'an HTTP' : 'a SOCKS5'
  return new TunnelError('PROXY_FAILED', `${label} is not ${kind} proxy, or it is broken: ${why}.`)
}
