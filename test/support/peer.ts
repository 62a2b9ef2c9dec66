// The far side of a socket under test: a node:net connection, so that no code under test judges itself.

import { once } from 'node:events'
import { connect, createServer, type Server, Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { TEST_CERT, TEST_KEY } from './tls.ts'
import { deferred, within } from './within.ts'

export interface PeerServer {
  readonly port: number
  /** The next connection that comes in. */
  accepted(): Promise<Socket>
  close(): void
}

export interface PeerOptions {
  readonly host?: string
  readonly unix?: string
  readonly tls?: boolean
}

export async function peerServer({
  host = '127.0.0.1',
  unix,
  tls = false,
}: PeerOptions): Promise<PeerServer> {
  const connections = new Set<Socket>()
  const waiting: ((socket: Socket) => void)[] = []
  const arrived: Socket[] = []
  const accept = (socket: Socket) => {
    connections.add(socket)
    socket.on('error', () => {}) // looked at by the test, if it cares
    const next = waiting.shift()
    if (next) next(socket)
    else arrived.push(socket)
  }
  const options = { allowHalfOpen: true, noDelay: true, pauseOnConnect: false }
  const server: Server = tls
    ? createTlsServer({ ...options, cert: TEST_CERT, key: TEST_KEY }, accept)
    : createServer(options, accept)
  server.listen(unix === undefined ? { host, port: 0 } : { path: unix })
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    accepted() {
      const first = arrived.shift()
      if (first) return Promise.resolve(first)
      const { promise, resolve } = deferred<Socket>()
      waiting.push(resolve)
      return within(promise, 'a connection at the peer')
    },
    close() {
      server.close()
      for (const socket of connections) socket.destroy()
    },
  }
}

export async function peerClient(port: number, tls: boolean): Promise<Socket> {
  const options = { host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true }
  const socket = tls ? connectTls({ ...options, ca: TEST_CERT }) : connect(options)
  await within(once(socket, tls ? 'secureConnect' : 'connect'), 'the peer to connect')
  socket.on('error', () => {})
  return socket
}

/** Collects what a peer receives: resolves with everything once it ended, rejects when it broke. */
export function everything(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  const { promise, resolve, reject } = deferred<Buffer>()
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  socket.on('end', () => resolve(Buffer.concat(pieces)))
  socket.on('error', reject)
  promise.catch(() => {}) // a test may look only at what came first
  return within(promise, 'the peer to receive everything')
}

/** Closes with RST. In Node only the connection below a TLS one can, and it is not public. */
export function reset(socket: Socket): void {
  const below: unknown = 'Bun' in globalThis ? undefined : Reflect.get(socket, '_parent')
  const raw = below instanceof Socket ? below : socket
  raw.resetAndDestroy()
}
