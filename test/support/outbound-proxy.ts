// Honest proxies as companies have them, on node:net: HTTP CONNECT with Basic, SOCKS5 with user and password.

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { reset } from './peer.ts'
import { TEST_CERT, TEST_KEY } from './tls.ts'
import { deferred } from './within.ts'

export interface OutboundProxyOptions {
  readonly kind: 'http' | 'socks5'
  /** What it wants to be shown. */
  readonly login?: { readonly user: string; readonly password: string }
  /** Speaks TLS itself. */
  readonly tls?: boolean
  /** Names that only the proxy can resolve: they and those below them are 127.0.0.1. */
  readonly names?: readonly string[]
  /** Where these ports of them are in truth. */
  readonly ports?: Readonly<Record<number, number>>
}

export class OutboundProxy implements Disposable {
  /** `host:port` of every connection that was asked for, as the client wrote it; after it the kind, for SOCKS5. */
  readonly targets: string[] = []
  /** Connections whose login was wrong or absent. */
  refused = 0
  port = 0
  /** Another one than the URL shows, from now on. */
  login: OutboundProxyOptions['login']
  readonly #options: OutboundProxyOptions
  readonly #open = new Set<Socket>()
  readonly #server: Server

  private constructor(options: OutboundProxyOptions) {
    this.#options = options
    this.login = options.login
    const accept = (socket: Socket) => {
      this.#open.add(socket)
      socket.on('error', () => {}) // `close` follows
      socket.on('close', () => this.#open.delete(socket))
      const reader = new Reader(socket)
      // It hangs up on whoever does not speak as it should.
      this.#serve(reader, socket).catch(() => socket.destroy())
    }
    const half = { allowHalfOpen: true, noDelay: true }
    this.#server = options.tls
      ? createTlsServer({ ...half, cert: TEST_CERT, key: TEST_KEY }, accept)
      : createServer(half, accept)
  }

  static async start(options: OutboundProxyOptions): Promise<OutboundProxy> {
    const proxy = new OutboundProxy(options)
    await proxy.#listen(0)
    return proxy
  }

  /** Its URL with the login, percent-encoded. `scheme`: socks5 or socks5h. */
  url(scheme: string = this.#options.kind): string {
    const { login, tls } = this.#options
    const shown = login ? `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}@` : ''
    return `${tls ? 'https' : scheme}://${shown}127.0.0.1:${this.port}`
  }

  get openCount(): number {
    return this.#open.size
  }

  /** Cuts every connection there is. */
  cutAll(): void {
    for (const socket of this.#open) reset(socket)
  }

  /** Goes away, and comes back on the same port. */
  async restart(during: () => Promise<void>): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.cutAll()
    await closed
    await during()
    await this.#listen(this.port)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  close(): void {
    this.#server.close()
    this.cutAll()
  }

  async #listen(port: number): Promise<void> {
    this.#server.listen({ host: '127.0.0.1', port })
    await once(this.#server, 'listening')
    const address = this.#server.address()
    this.port = typeof address === 'object' && address !== null ? address.port : 0
  }

  #serve(reader: Reader, socket: Socket): Promise<void> {
    return this.#options.kind === 'http'
      ? this.#serveConnect(reader, socket)
      : this.#serveSocks(reader, socket)
  }

  async #serveConnect(reader: Reader, socket: Socket): Promise<void> {
    const head = (await reader.until('\r\n\r\n')).toString('latin1')
    const [, host = '', port = ''] = /^CONNECT \[?([^\]]+?)\]?:(\d+) HTTP\/1\.1\r\n/.exec(head) ?? []
    const { login } = this
    const shown = /^Proxy-Authorization: Basic (\S+)\r$/m.exec(head)?.[1] ?? ''
    if (login && Buffer.from(shown, 'base64').toString() !== `${login.user}:${login.password}`) {
      this.refused++
      const challenge = 'Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm="a, b"'
      socket.end(`HTTP/1.1 407 Proxy Authentication Required\r\n${challenge}\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    this.targets.push(`${host}:${port}`)
    const up = await this.#reach(host, Number(port))
    if (up === undefined) return void socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
    socket.write('HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n')
    join(reader, socket, up)
  }

  async #serveSocks(reader: Reader, socket: Socket): Promise<void> {
    const [version, count = 0] = await reader.exactly(2)
    if (version !== 5) return void socket.destroy()
    const methods = await reader.exactly(count)
    const { login } = this
    const method = login ? 2 : 0
    if (!methods.includes(method)) {
      this.refused++
      return void socket.end(Buffer.of(5, 0xff))
    }
    socket.write(Buffer.of(5, method))
    if (login) {
      const user = await reader.exactly((await reader.exactly(2))[1]!)
      const password = await reader.exactly((await reader.exactly(1))[0]!)
      const isRight = user.toString() === login.user && password.toString() === login.password
      if (!isRight) {
        this.refused++
        return void socket.end(Buffer.of(1, 1))
      }
      socket.write(Buffer.of(1, 0))
    }
    const [, , , kind] = await reader.exactly(4)
    const length = kind === 1 ? 4 : kind === 4 ? 16 : (await reader.exactly(1))[0]!
    const address = await reader.exactly(length)
    const port = (await reader.exactly(2)).readUInt16BE()
    const host = kind === 1 ? address.join('.') : kind === 4 ? ipv6(address) : address.toString()
    this.targets.push(`${host}:${port} ${kind === 1 ? 'IPv4' : kind === 4 ? 'IPv6' : 'name'}`)
    const up = await this.#reach(host, port)
    if (up === undefined) return void socket.end(Buffer.of(5, 5, 0, 1, 0, 0, 0, 0, 0, 0))
    // A bound address of each kind: clients must know where it ends.
    const bound = kind === 1 ? [1, 127, 0, 0, 1] : kind === 4 ? [4, ...address] : [3, 2, 0x61, 0x62]
    socket.write(Buffer.of(5, 0, 0, ...bound, 0, 80))
    join(reader, socket, up)
  }

  async #reach(host: string, port: number): Promise<Socket | undefined> {
    const { names, ports } = this.#options
    const isKnown = names?.some(name => host === name || host.endsWith(`.${name}`))
    const known = isKnown ? { host: '127.0.0.1', port: ports?.[port] ?? port } : { host, port }
    const up = connect({ ...known, allowHalfOpen: true, noDelay: true })
    this.#open.add(up)
    up.on('close', () => this.#open.delete(up))
    try {
      await once(up, 'connect')
      return up
    } catch {
      return undefined // told to the client
    }
  }
}

/** Bytes both ways, ends and resets too. */
function join(reader: Reader, near: Socket, far: Socket): void {
  const rest = reader.release()
  if (rest.length > 0) far.write(rest)
  near.pipe(far)
  far.pipe(near)
  const cut = () => {
    reset(near)
    reset(far)
  }
  near.on('error', cut)
  far.on('error', cut)
  near.on('close', () => far.destroy())
  far.on('close', () => near.destroy())
}

function ipv6(bytes: Buffer): string {
  return new URL(`http://[${bytes.toString('hex').match(/.{4}/g)!.join(':')}]`).hostname.slice(1, -1)
}

/** Reads a socket piece by piece. */
class Reader {
  readonly #socket: Socket
  #received = Buffer.alloc(0)
  #wake: (() => void) | undefined
  #isOver = false
  readonly #take = (bytes: Buffer) => {
    this.#received = Buffer.concat([this.#received, bytes])
    this.#wake?.()
  }

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', this.#take)
    const over = () => {
      this.#isOver = true
      this.#wake?.()
    }
    socket.on('end', over).on('close', over)
  }

  async exactly(length: number): Promise<Buffer> {
    while (this.#received.length < length) await this.#more()
    const bytes = this.#received.subarray(0, length)
    this.#received = this.#received.subarray(length)
    return bytes
  }

  async until(mark: string): Promise<Buffer> {
    while (!this.#received.includes(mark)) await this.#more()
    return this.exactly(this.#received.indexOf(mark) + mark.length)
  }

  /** Reads no more. Returns what nobody took. */
  release(): Buffer {
    this.#socket.off('data', this.#take)
    return this.#received
  }

  async #more(): Promise<void> {
    if (this.#isOver) throw new Error('it ended too early')
    const { promise, resolve } = deferred()
    this.#wake = resolve
    await promise
  }
}
