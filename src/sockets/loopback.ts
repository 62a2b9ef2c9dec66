// Listens on the loopback addresses of this machine, in a way that both runtimes have, for the user's own pages,
// which have no large transfers.

import { createServer, type Socket as NetSocket, type Server } from 'node:net'

/** An accepted connection. */
export interface LocalSocket {
  /** Writes bytes, whose array the socket may keep. Returns `false` to ask for no more before `drained`. */
  write(bytes: Uint8Array): boolean
  end(): void
  terminate(): void
  pause(): void
  resume(): void
}

export interface LocalHandler {
  received(bytes: Uint8Array): void
  drained(): void
  ended(): void
  closed(): void
}

export interface LocalListening {
  readonly port: number
  /** Accepts no more connections and cuts the open ones. */
  close(): void
}

/** The maximum number of connections: more than a browser and some commands need. If exceeded: a connection is closed at once. */
const MAX_CONNECTIONS = 128
/** The number of attempts to find a port that is free on both IPv4 and IPv6. */
const TRIES = 5

/**
 * Listens on 127.0.0.1 and, if the machine has it, on ::1, on the same port; 0: any free one. Rejects with the system's error.
 */
export function listenLocally(
  port: number,
  accept: (socket: LocalSocket) => LocalHandler,
): Promise<LocalListening> {
  return onLoopback(port, (host, one) => listen(host, one, raw => acceptFew(raw, accept), MAX_CONNECTIONS))
}

/** Listens on both loopback addresses with the same port, as `listenAt` does on one. */
export async function onLoopback(
  port: number,
  listenAt: (host: string, port: number) => Promise<LocalListening>,
): Promise<LocalListening> {
  for (let left = TRIES; ; left--) {
    const four = await listenAt('127.0.0.1', port)
    try {
      const six = await listenAt('::1', four.port)
      return {
        port: four.port,
        close() {
          four.close()
          six.close()
        },
      }
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : ''
      // The machine has no IPv6.
      if (code !== 'EADDRINUSE') return four
      four.close()
      if (port !== 0 || left === 0) throw error
    }
  }
}

/** Listens there with Node's sockets. */
export function listen(
  host: string,
  port: number,
  accept: (raw: NetSocket) => void,
  maxConnections?: number,
): Promise<LocalListening> {
  const open = new Set<NetSocket>()
  const server: Server = createServer({ allowHalfOpen: true, noDelay: true }, raw => {
    open.add(raw)
    raw.on('close', () => open.delete(raw))
    accept(raw)
  })
  if (maxConnections !== undefined) server.maxConnections = maxConnections
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', reject).on('error', () => {})
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : port,
        close() {
          server.close()
          for (const raw of open) raw.resetAndDestroy()
        },
      })
    })
  })
}

function acceptFew(raw: NetSocket, accept: (socket: LocalSocket) => LocalHandler): void {
  const handler = accept({
    write: bytes => raw.write(bytes),
    end: () => raw.end(),
    terminate: () => raw.destroy(),
    pause: () => raw.pause(),
    resume: () => raw.resume(),
  })
  raw.on('data', (bytes: Buffer) => handler.received(bytes))
  raw.on('drain', () => handler.drained())
  raw.on('end', () => handler.ended())
  raw.on('close', () => handler.closed())
  // `close` follows.
  raw.on('error', () => {})
}
