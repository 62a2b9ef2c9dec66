// Dials through a proxy.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { TunnelError } from '../../errors.ts'
import type { Dial, Opening } from '../../socket.ts'
import { onThisMachine } from '../../sockets/dial.ts'
import { type ChooseProxy, notAProxy, type ProxySettings } from '../carriers/proxy.ts'
import { ConnectOpening } from './connect.ts'
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
  const reason = cause instanceof Error ? cause.message : String(cause)
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
