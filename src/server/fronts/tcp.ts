// The public port of a TCP tunnel: each connection to it becomes a stream to the origin.

import { TunnelError } from '../../errors.ts'
import { listenBun } from '../../sockets/bun.ts'
import { RawVisitor, type RawVisitorHost } from '../raw-visitor.ts'
import type { PortFront, Tunnel } from '../tunnels.ts'

/** What a TCP front needs of its server. */
export interface TcpFrontHost extends RawVisitorHost {
  /** Address to listen on. */
  readonly hostname: string
  /** Connections of one tunnel at once; above, they are closed. */
  readonly maxVisitors: number
  /** Something threw that should not have. */
  failed(error: Error): void
}

/** Listens for a tunnel's visitors. Throws `PORT_TAKEN` or `PORT_NOT_ALLOWED`. */
export function listenTcp(tunnel: Tunnel, host: TcpFrontHost): PortFront {
  const visitors = new Set<RawVisitor>()
  const raw: RawVisitorHost = {
    rawBegan: visitor => host.rawBegan(visitor),
    rawEnded(visitor, code) {
      visitors.delete(visitor)
      host.rawEnded(visitor, code)
    },
  }
  const listening = listen(tunnel.port, host, socket => {
    const visitor = new RawVisitor(socket, tunnel, raw, undefined)
    visitors.add(visitor)
    visitor.start()
    if (visitors.size > host.maxVisitors) visitor.cut('TUNNEL_BUSY')
    return visitor.socketHandler
  })
  return {
    stop() {
      listening.stop()
      for (const visitor of [...visitors]) visitor.cut('CLIENT_GONE')
    },
  }
}

type Accept = Parameters<typeof listenBun>[0]['accept']

function listen(port: number, host: TcpFrontHost, accept: Accept) {
  try {
    return listenBun({ hostname: host.hostname, port, accept, failed: error => host.failed(error) })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    throw new TunnelError(code === 'EACCES' ? 'PORT_NOT_ALLOWED' : 'PORT_TAKEN', undefined, { cause })
  }
}
