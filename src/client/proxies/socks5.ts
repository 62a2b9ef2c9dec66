// SOCKS5 (RFC 1928, RFC 1929): asks a proxy for a connection, and reads its replies.
//
//   → 05 n methods        ← 05 method
//   → 01 n user n password        ← 01 status            if the method is 02
//   → 05 01 00 kind address port        ← 05 reply 00 kind address port, then the server's bytes

import { isIP } from 'node:net'
import { optionInvalid, TunnelError } from '../../errors.ts'
import type { Opening } from '../../socket.ts'
import { cannotReach, notAProxy, type ProxySettings } from '../carriers/proxy.ts'

const VERSION = 5
const AUTH_VERSION = 1
const METHOD = { none: 0, password: 2, nothing: 0xff } as const
const KIND = { ipv4: 1, name: 3, ipv6: 4 } as const
const MAX_NAME_BYTES = 255

const REPLIES: readonly string[] = [
  '',
  'it has a fault',
  'its rules forbid it',
  'it has no way to that network',
  'it cannot reach that host',
  'the connection was refused',
  'the packets went round too long',
  'it does not know CONNECT',
  'it does not know that kind of address',
]
/** The replies that blame the server or the network rather than the proxy. */
const UNREACHABLE: ReadonlySet<number> = new Set([3, 4, 5, 6])

export class Socks5Opening implements Opening {
  readonly #proxy: ProxySettings
  readonly #request: Uint8Array
  #awaits: 'nothing' | 'method' | 'password' | 'reply' = 'nothing'
  #received: Uint8Array = new Uint8Array(0)

  /** Makes the dialogue. `host`: an address, or a name for the proxy to resolve. */
  constructor(proxy: ProxySettings, host: string, port: number) {
    this.#proxy = proxy
    this.#request = Uint8Array.of(VERSION, 1, 0, ...addressBytes(host), port >> 8, port & 0xff)
  }

  begin(): Uint8Array {
    this.#awaits = 'method'
    return this.#proxy.login === undefined
      ? Uint8Array.of(VERSION, 1, METHOD.none)
      : Uint8Array.of(VERSION, 2, METHOD.none, METHOD.password)
  }

  take(bytes: Uint8Array): Uint8Array | { readonly rest: Uint8Array } | undefined {
    this.#received = Buffer.concat([this.#received, bytes])
    const [version, second = 0] = this.#received
    const expected = this.#awaits === 'password' ? AUTH_VERSION : VERSION
    if (version !== expected) throw notAProxy(this.#proxy, 'it answered with something that is not SOCKS5')
    if (this.#awaits === 'reply') return this.#reply()
    if (this.#received.length < 2) return undefined
    // Before our next request, the proxy has nothing more to send.
    if (this.#awaits === 'nothing' || this.#received.length > 2) {
      throw notAProxy(this.#proxy, 'it spoke before it was asked')
    }
    this.#received = new Uint8Array(0)
    return this.#awaits === 'method' ? this.#method(second) : this.#password(second)
  }

  #method(method: number): Uint8Array {
    const { login, label } = this.#proxy
    if (method === METHOD.none) return this.#ask()
    if (method === METHOD.password && login !== undefined) {
      this.#awaits = 'password'
      const [user, password] = [Buffer.from(login.user), Buffer.from(login.password)]
      return Uint8Array.of(AUTH_VERSION, user.length, ...user, password.length, ...password)
    }
    if (method !== METHOD.nothing) throw notAProxy(this.#proxy, 'it picked a method that was not offered')
    const why = login ? 'does not take user and password' : 'wants user and password'
    throw new TunnelError('PROXY_AUTH_REFUSED', `The proxy ${label} ${why}.`)
  }

  #password(status: number): Uint8Array {
    if (status === 0) return this.#ask()
    const detail = `The proxy ${this.#proxy.label} did not accept user and password.`
    throw new TunnelError('PROXY_AUTH_REFUSED', detail)
  }

  #ask(): Uint8Array {
    this.#awaits = 'reply'
    return this.#request
  }

  #reply(): { readonly rest: Uint8Array } | undefined {
    const [, reply, , kind, nameLength] = this.#received
    if (reply !== undefined && reply !== 0) throw this.#refusal(reply)
    if (kind === undefined || nameLength === undefined) return undefined
    const addressLength =
      kind === KIND.ipv4 ? 4 : kind === KIND.ipv6 ? 16 : kind === KIND.name ? 1 + nameLength : -1
    if (addressLength === -1) throw notAProxy(this.#proxy, 'it bound an address of an unknown kind')
    const end = 4 + addressLength + 2
    return this.#received.length < end ? undefined : { rest: this.#received.subarray(end) }
  }

  #refusal(reply: number): TunnelError {
    const why = REPLIES[reply] ?? `it replied ${reply}`
    if (UNREACHABLE.has(reply)) return cannotReach(this.#proxy, why)
    return new TunnelError('PROXY_FAILED', `The proxy ${this.#proxy.label} gave no connection: ${why}.`)
  }
}

function addressBytes(host: string): readonly number[] {
  const family = isIP(host)
  if (family === 4) return [KIND.ipv4, ...host.split('.').map(Number)]
  if (family === 6) return [KIND.ipv6, ...ipv6Bytes(host)]
  const name = Buffer.from(host)
  if (name.length > MAX_NAME_BYTES) {
    throw optionInvalid('The name of the server is too long for SOCKS5.')
  }
  return [KIND.name, name.length, ...name]
}

/** Returns the bytes of an IPv6 address. `URL` parses every spelling and returns a canonical one. */
function ipv6Bytes(address: string): readonly number[] {
  const [bare = ''] = address.split('%')
  const { hostname } = new URL(`http://[${bare}]`)
  const [head = '', tail] = hostname.slice(1, -1).split('::')
  const groupsOf = (text: string) => (text === '' ? [] : text.split(':').map(one => Number.parseInt(one, 16)))
  const first = groupsOf(head)
  const last = tail === undefined ? [] : groupsOf(tail)
  const groups = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
  return groups.flatMap(group => [group >> 8, group & 0xff])
}
