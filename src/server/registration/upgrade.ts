// A request to become a client: the WebSocket handshake, the token, and whether there is room for the client.

import { createHash } from 'node:crypto'
import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import { STREAMS_SUBPROTOCOL } from '../../wire/frame.ts'
import { type Arrival, type Route, refusal } from '../contracts/front.ts'
import type { Verdict } from '../limits/token-throttle.ts'
import { clientAddress } from '../limits/visitor-hop.ts'
import type { ControlHost } from './control.ts'

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** A connection that asks to become a client's. */
export interface Applicant {
  /** The address of the client, as trusted proxies report it. */
  readonly remoteAddress: string
  readonly wire: 'streams' | 'json'
  /** The program and version that the client reports, at most `MAX_AGENT_CHARS` long. Empty if it reports none. */
  readonly agent: string
}

const MAX_AGENT_CHARS = 100

export function upgradeRoute({ head, remoteAddress }: Arrival, host: ControlHost): Route {
  const key = head.header('sec-websocket-key') ?? ''
  if (!isHandshake(head, key)) return refusal('BAD_REQUEST')
  const offered = (head.header('sec-websocket-protocol') ?? '').split(',').map(one => one.trim())
  const applicant: Applicant = {
    remoteAddress: clientAddress(remoteAddress, head, address => host.isTrusted(address)),
    wire: offered.includes(STREAMS_SUBPROTOCOL) ? 'streams' : 'json',
    agent: (head.header('user-agent') ?? '').slice(0, MAX_AGENT_CHARS),
  }
  const refuse = (code: ErrorCode): Route => {
    host.refused(applicant, code)
    return refusal(code)
  }
  // Only browsers send Origin. A web page must not be able to act as a client from inside of its visitor's network.
  if (head.header('origin') !== undefined) return refuse('ORIGIN_HEADER_REFUSED')
  if (applicant.wire === 'json' && !host.hasJsonWire) return refuse('WIRE_UNSUPPORTED')
  const routeOf = (verdict: Verdict): Route => {
    if (typeof verdict === 'string') return refuse(verdict)
    const code = host.clientRefusal(verdict, applicant.remoteAddress)
    if (code !== undefined) return refuse(code)
    return {
      kind: 'takeover',
      takeOver(socket) {
        socket.write(switchingProtocols(key, applicant.wire))
        return host.adopt(socket, applicant, verdict)
      },
    }
  }
  const { tokenThrottle: tokenGate } = host
  const [, token] = /^Bearer (\S+)$/i.exec(head.header('authorization') ?? '') ?? []
  if (tokenGate.isQuick(token, applicant.remoteAddress))
    return routeOf(tokenGate.judge(token, applicant.remoteAddress))
  return {
    kind: 'holding',
    hold(held) {
      const wait = tokenGate.judgeLater(token, applicant.remoteAddress, verdict => held(routeOf(verdict)))
      if (typeof wait === 'string') host.refused(applicant, wait)
      return wait
    },
  }
}

function isHandshake(head: RequestHead, key: string): boolean {
  const isGet = head.method === 'GET' && head.body === 'none'
  return isGet && head.header('sec-websocket-version') === '13' && /^[A-Za-z0-9+/]{22}==$/.test(key)
}

function switchingProtocols(key: string, wire: 'streams' | 'json'): Uint8Array {
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64')
  const protocol = wire === 'streams' ? `Sec-WebSocket-Protocol: ${STREAMS_SUBPROTOCOL}\r\n` : ''
  return Buffer.from(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${protocol}\r\n`,
  )
}
