// Dials through a proxy.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { messageOf, TunnelError } from '../../errors.ts'
import type { Dial, Opening } from '../../socket.ts'
import { onThisMachine } from '../../sockets/dial.ts'
import { endOfHead, MAX_ANSWER_HEAD_BYTES, parseAnswerHead } from '../../wire/handshake.ts'
import { type ChooseProxy, cannotReach, notAProxy, type ProxySettings } from '../carriers/proxy.ts'
import { Socks5Opening } from './socks5.ts'

/**
 * Returns a dial that uses the proxy which `choose` returns, and connects directly without one. Rejects as `dial`
 * does, and with `PROXY_FAILED`, `PROXY_AUTH_REFUSED`, or `SERVER_UNREACHABLE` if the proxy reports that.
 */
export function dialThrough(choose: ChooseProxy, dial: Dial): Dial {
  return async (wanted, handler, signal) => {
    const address = onThisMachine(wanted)
    const proxy = choose(address)
    if (proxy === undefined) return dial(address, handler, signal)
    const { host = 'localhost', port = 0 } = address
    const opening = new Watched(await openingFor(proxy, host, port))
    try {
      return await dial({ ...address, via: { address: proxy.address, opening } }, handler, signal)
    } catch (cause) {
      throw opening.isOver || cause instanceof TunnelError ? cause : failureOf(proxy, opening, cause)
    }
  }
}

async function openingFor(proxy: ProxySettings, host: string, port: number): Promise<Opening> {
  if (proxy.scheme === 'http' || proxy.scheme === 'https') return new ConnectOpening(proxy, host, port)
  // `localhost` means this machine here, and another machine at the proxy.
  if (proxy.scheme === 'socks5h' || isIP(host) !== 0 || host === 'localhost') {
    return new Socks5Opening(proxy, host, port)
  }
  try {
    return new Socks5Opening(proxy, (await lookup(host)).address, port)
  } catch (cause) {
    const detail = `${host} cannot be resolved here; with socks5h:// the proxy does that.`
    throw new TunnelError('SERVER_UNREACHABLE', detail, { cause })
  }
}

function failureOf(proxy: ProxySettings, { hasBegun }: Watched, cause: unknown): TunnelError {
  const reason = messageOf(cause)
  if (hasBegun) return notAProxy(proxy, reason)
  return new TunnelError('PROXY_FAILED', `The proxy ${proxy.label} cannot be reached: ${reason}.`, {
    cause,
  })
}

/** An opening that records its progress, which shows who caused a failed dial. */
class Watched implements Opening {
  readonly #opening: Opening
  hasBegun = false
  isOver = false

  constructor(opening: Opening) {
    this.#opening = opening
  }

  begin(): Uint8Array {
    this.hasBegun = true
    return this.#opening.begin()
  }

  take(bytes: Uint8Array): ReturnType<Opening['take']> {
    const result = this.#opening.take(bytes)
    this.isOver = result !== undefined && !(result instanceof Uint8Array)
    return result
  }
}

/** The statuses of a proxy whose target does not respond. */
const UNREACHABLE: ReadonlySet<number> = new Set([502, 503, 504])

export class ConnectOpening implements Opening {
  readonly #proxy: ProxySettings
  readonly #target: string
  #hasBegun = false
  #received: Uint8Array = new Uint8Array(0)

  /** Makes the dialogue. `host` may be a name or an address. */
  constructor(proxy: ProxySettings, host: string, port: number) {
    this.#proxy = proxy
    this.#target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  begin(): Uint8Array {
    this.#hasBegun = true
    const lines = [`CONNECT ${this.#target} HTTP/1.1`, `Host: ${this.#target}`]
    const { login } = this.#proxy
    if (login !== undefined) {
      const basic = Buffer.from(`${login.user}:${login.password}`).toString('base64')
      lines.push(`Proxy-Authorization: Basic ${basic}`)
    }
    return new TextEncoder().encode(`${lines.join('\r\n')}\r\n\r\n`)
  }

  take(bytes: Uint8Array): { readonly rest: Uint8Array } | undefined {
    if (!this.#hasBegun) throw notAProxy(this.#proxy, 'it spoke before it was asked')
    this.#received = Buffer.concat([this.#received, bytes])
    // Interim responses may come before the final one. All of them share the room of one.
    for (let start = 0; ; ) {
      const length = endOfHead(this.#received.subarray(start))
      if (length === -1) break
      const end = start + length
      if (end > MAX_ANSWER_HEAD_BYTES) break
      const head = parseAnswerHead(this.#received.subarray(start, end))
      if (head === undefined) throw notAProxy(this.#proxy, 'it answered with something that is not HTTP')
      // A successful response to CONNECT has no body, whatever its headers say. The rest comes from the server.
      if (head.status >= 200 && head.status < 300) return { rest: this.#received.subarray(end) }
      if (head.status >= 200) throw this.#refusal(head.status, head.headers.get('proxy-authenticate') ?? '')
      start = end
    }
    if (this.#received.length > MAX_ANSWER_HEAD_BYTES) {
      throw notAProxy(this.#proxy, `the head of its answer has more than ${MAX_ANSWER_HEAD_BYTES} bytes`)
    }
    return undefined
  }

  #refusal(status: number, challenge: string): TunnelError {
    const { label, login } = this.#proxy
    // tinyproxy returns 401 for a wrong password.
    if (status === 407 || status === 401) {
      const isBasic = challenge === '' || /(?:^|,)\s*basic\b/i.test(challenge)
      const why = isBasic
        ? `The proxy ${label} ${login ? 'did not accept user and password' : 'wants user and password'}.`
        : `The proxy ${label} does not take Basic, and nothing else is spoken here.`
      return new TunnelError('PROXY_AUTH_REFUSED', why)
    }
    if (UNREACHABLE.has(status)) return cannotReach(this.#proxy, `it answered with status ${status}`)
    return new TunnelError('PROXY_FAILED', `The proxy ${label} answered CONNECT with status ${status}.`)
  }
}
