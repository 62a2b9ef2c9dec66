// A server of the JSON wire, written from its description alone, as a stand-in for existing servers: with their way
// of answering visitors, and of picking whatever subprotocol is offered first. It imports nothing from src on purpose.

import type { Server, ServerWebSocket } from 'bun'
import type { Message } from './json-client.ts'
import { within } from './within.ts'

interface Data {
  name: string
}

export interface NaiveJsonServerOptions {
  /** What it sends on open. */
  readonly connected?: Message
  /** What it does with `ready`; `undefined` answers as existing servers do. */
  readonly ready?: (name: string, send: (message: unknown) => void) => boolean
  /** What it says of its public side. Default `http://<name>.example`. */
  readonly url?: (name: string) => string
  /** Visitors get nowhere. */
  readonly isPublicSideDead?: boolean
  /** Status of its answer to an upgrade; 101 if absent. */
  readonly refuse?: number
}

export class NaiveJsonServer implements Disposable {
  /** Everything that clients sent. */
  readonly received: Message[] = []
  readonly queries: string[] = []
  readonly authorizations: (string | null)[] = []
  readonly #options: NaiveJsonServerOptions
  readonly #server: Server<Data>
  readonly #sockets = new Map<string, ServerWebSocket<Data>>()
  readonly #waiting = new Map<unknown, (message: Message) => void>()
  readonly #changed = new Set<() => void>()
  #open: ServerWebSocket<Data> | undefined
  #lastId = 0

  constructor(options: NaiveJsonServerOptions = {}) {
    this.#options = options
    this.#server = Bun.serve<Data>({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request, server) => this.#fetch(request, server),
      websocket: {
        maxPayloadLength: 64 * 1024 * 1024,
        open: socket => {
          this.#open = socket
          socket.send(JSON.stringify(options.connected ?? { type: 'connected' }))
        },
        message: (socket, text) => this.#take(socket, String(text)),
        close: socket => {
          this.#sockets.delete(socket.data.name)
          this.received.push({ type: '(closed)' })
          this.#wake()
        },
      },
    })
  }

  get port(): number {
    return this.#server.port ?? 0
  }

  /** Sends any message on the last socket that opened. */
  send(message: unknown): void {
    this.#open?.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** Sends a request with any fields and waits for the answer to its id. */
  async ask(fields: Message): Promise<Message> {
    const id = fields.id ?? ++this.#lastId
    const { promise, resolve } = Promise.withResolvers<Message>()
    this.#waiting.set(id, resolve)
    this.send({ type: 'request', method: 'GET', path: '/', headers: {}, ...fields, id })
    return within(promise, `the answer to ${JSON.stringify(fields).slice(0, 200)}`)
  }

  /** Waits for a message of this type. */
  async heard(type: string): Promise<Message> {
    const find = (): Message | undefined => this.received.find(one => one.type === type)
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#changed.add(resolve)
      await within(promise, type)
    }
  }

  /** Cuts the last socket without a word. */
  cut(): true {
    this.#open?.terminate()
    return true
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
  }

  async #fetch(request: Request, server: Server<Data>): Promise<Response | undefined> {
    const host = request.headers.get('host') ?? ''
    if (request.headers.get('upgrade') === 'websocket') {
      this.queries.push(new URL(request.url).search)
      this.authorizations.push(request.headers.get('authorization'))
      if (this.#options.refuse !== undefined) return new Response('no', { status: this.#options.refuse })
      return server.upgrade(request, { data: { name: '' } }) ? undefined : new Response('', { status: 400 })
    }
    if (new URL(request.url).pathname === '/status') return Response.json({ version: '0.2.12' })
    if (this.#options.isPublicSideDead === true) return new Response('Not found', { status: 404 })
    const socket = this.#sockets.get(host.split('.')[0] ?? '')
    if (socket === undefined) return new Response('Tunnel not found', { status: 404 })
    const headers: Record<string, string> = {}
    request.headers.forEach((value, name) => {
      if (!['host', 'connection', 'upgrade', 'content-length'].includes(name)) headers[name] = value
    })
    headers['x-forwarded-host'] = host
    headers['x-forwarded-proto'] = 'http'
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD'
    const isText = (request.headers.get('content-type') ?? '').startsWith('text/')
    const bytes = hasBody ? Buffer.from(await request.arrayBuffer()) : undefined
    const answer = await this.ask({
      method: request.method,
      path: request.url.slice(request.url.indexOf('/', 8)),
      headers,
      ...(bytes && { body: bytes.toString(isText ? 'utf8' : 'base64') }),
      ...(bytes && !isText && { isBase64Encoded: true }),
    })
    const body = typeof answer.body === 'string' ? answer.body : ''
    return new Response(answer.isBase64Encoded === true ? Buffer.from(body, 'base64') : body, {
      status: Number(answer.status),
      headers: answer.headers as Record<string, string>, // what Response makes of it is what existing servers do
    })
  }

  #take(socket: ServerWebSocket<Data>, text: string): void {
    const message = JSON.parse(text) as Message // the client under test sends objects, or the test fails
    this.received.push(message)
    if (message.type === 'ready') this.#ready(socket, String(message.subdomain))
    if (message.type === 'ping') socket.send('{"type":"pong"}')
    if (message.type === 'disconnect') socket.close(1000, 'Client disconnected')
    if (message.type === 'response') this.#waiting.get(message.id)?.(message)
    this.#wake()
  }

  #ready(socket: ServerWebSocket<Data>, name: string): void {
    if (this.#options.ready?.(name, message => socket.send(JSON.stringify(message))) === true) return
    if (this.#sockets.has(name))
      return void socket.send(JSON.stringify({ type: 'subdomain_taken', subdomain: name }))
    socket.data.name = name
    this.#sockets.set(name, socket)
    const url = this.#options.url?.(name) ?? `http://${name}.example`
    socket.send(JSON.stringify({ type: 'registered', subdomain: name, url }))
  }

  #wake(): void {
    for (const resolve of this.#changed) resolve()
    this.#changed.clear()
  }
}
