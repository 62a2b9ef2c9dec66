// The address of the tunnel server, and whether others can read what a client sends there.

import { createRequire } from 'node:module'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { isLoopback, unusedPart } from '../../names.ts'
import type { Address } from '../../socket.ts'

export interface ServerAddress {
  readonly address: Address
  readonly host: string
  /** The path before every requested path, such as `/tunnel`; `''` if the server has the whole host. */
  readonly path: string
  readonly isSecure: boolean
}

/** A pattern for the SHA-256 of a public key, as curl writes it. */
const PIN = /^sha256\/\/[A-Za-z0-9+/]{43}=$/

/** The TLS options with which a client verifies its server and identifies itself. */
export interface ServerTlsOptions {
  readonly verifyServer?: boolean
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly pin?: string
}

/**
 * Parses `ws://`, `wss://`, `http://`, `https://` or `host[:port]`, which means HTTPS unless the host is this
 * machine. Only a path may follow.
 */
export function parseServer(server: string, tls: ServerTlsOptions = {}): ServerAddress {
  const parsed = parseUrl(server)
  if (parsed === undefined || !/^(?:wss?|https?):$/.test(parsed.protocol) || parsed.hostname === '') {
    const detail = `"${server}" is not the address of a server, such as tunnel.example or http://localhost:8080.`
    throw optionInvalid(detail)
  }
  const isSecure = parsed.protocol === 'wss:' || parsed.protocol === 'https:'
  const path = parsed.pathname.replace(/\/+$/, '')
  parsed.pathname = ''
  const more = unusedPart(parsed)
  if (more !== undefined) {
    const origin = `${isSecure ? 'https' : 'http'}://${parsed.host}${path}`
    throw optionInvalid(`The address of the server has ${more}, and none is used: give ${origin}.`)
  }
  const host = parsed.hostname.replace(/^\[|\]$/g, '')
  const port = parsed.port === '' ? (isSecure ? 443 : 80) : Number(parsed.port)
  const secure = {
    ...(tls.verifyServer !== undefined && { verify: tls.verifyServer }),
    ...(tls.ca !== undefined && { ca: tls.ca }),
    ...ownCertificate(tls),
    ...(tls.pin !== undefined && { pin: checkedPin(tls.pin) }),
  }
  return { address: { host, port, ...(isSecure && { tls: secure }) }, host: parsed.host, path, isSecure }
}

function ownCertificate({
  cert,
  key,
}: ServerTlsOptions): { readonly cert: string; readonly key: string } | undefined {
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined)
    throw optionInvalid('cert and key belong together; one of them is missing.')
  if (isPair(cert, key)) return { cert, key }
  throw optionInvalid('cert and key are no certificate and its private key in PEM format.')
}

function isPair(cert: string, key: string): boolean {
  // Loaded late, because few clients have a certificate and every command loads this file.
  const crypto = createRequire(import.meta.url)('node:crypto') as typeof import('node:crypto')
  try {
    return new crypto.X509Certificate(cert).checkPrivateKey(crypto.createPrivateKey(key))
  } catch {
    return false // not PEM of this kind; OpenSSL's message says no more
  }
}

function checkedPin(pin: string): string {
  if (PIN.test(pin)) return pin
  throw optionInvalid(`pin "${pin}" is not of the form sha256//… with 44 characters of base64.`)
}

/** Returns the servers in TUNNEL_SERVER, which commas separate. */
export function serverList(text: string): readonly string[] {
  return text.split(',').flatMap(one => one.trim() || [])
}

/** Returns the canonical form of a server: `https://tunnel.example/path`, with the port if it is not the scheme's default. */
export function spelled({ host, path, isSecure }: ServerAddress): string {
  return `${isSecure ? 'https' : 'http'}://${host}${path}`
}

/** Returns the canonical form of a server that is given as text. */
export function serverOrigin(server: string): string {
  return spelled(parseServer(server))
}

/**
 * Throws `TOKEN_UNENCRYPTED` if a token would be readable by others: sent to another machine without TLS, or through
 * a proxy, even to this machine.
 */
export function guardToken(
  token: string | undefined,
  way: {
    readonly server: ServerAddress
    readonly proxyLabel: string | undefined
    readonly isInsecureTokenAllowed: boolean
  },
): void {
  const { server, proxyLabel, isInsecureTokenAllowed } = way
  if (token === undefined || server.isSecure || isInsecureTokenAllowed) return
  if (isLoopback(server.address.host ?? '') && proxyLabel === undefined) return
  const through = proxyLabel === undefined ? '' : `, through the proxy ${proxyLabel}`
  throw new TunnelError(
    'TOKEN_UNENCRYPTED',
    `The token would go to http://${server.host} unencrypted${through}.`,
  )
}

function parseUrl(server: string): URL | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(server)) return URL.canParse(server) ? new URL(server) : undefined
  const secure = `https://${server}`
  if (!URL.canParse(secure)) return undefined
  const url = new URL(secure)
  // Setting `protocol` would not do: the URL has dropped a port 443 by now.
  return isLoopback(url.hostname) ? new URL(`http://${server}`) : url
}
