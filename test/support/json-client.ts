// A client of the JSON wire, written from its description alone, as a stand-in for existing clients.
// It imports nothing from src on purpose.

import { within } from './within.ts'

export type Message = Record<string, unknown>
/** What a client may answer: fields of a response, which may be wrong; `undefined` for silence. */
export type Answers = (request: Message, client: NaiveJsonClient) => Message | undefined

export const echo: Answers = request => ({
  status: 200,
  headers: { 'content-type': 'text/plain' },
  body: `${String(request.method)} ${String(request.path)}`,
})

/** One WebSocket; registers what it is told and answers requests with a function. */
export class NaiveJsonClient implements Disposable {
  readonly received: Message[] = []
  closeCode = 0
  readonly #socket: WebSocket
  readonly #changed = new Set<() => void>()
  readonly #answers: Answers

  constructor(
    port: number,
    answers: Answers = echo,
    query = '?subdomain=app',
    token?: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    this.#answers = answers
    // Bun's own: a browser's has no headers.
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}${query}`, {
      headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    })
    this.#socket.addEventListener('message', event => this.#take(String(event.data)))
    this.#socket.addEventListener('close', event => {
      this.closeCode = event.code
      this.#wake()
    })
  }

  get isClosed(): boolean {
    return this.#socket.readyState === WebSocket.CLOSED
  }

  async opened(): Promise<this> {
    await this.until(() => this.#socket.readyState === WebSocket.OPEN || this.isClosed, 'the socket to open')
    return this
  }

  send(message: unknown): void {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  sendBytes(bytes: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(bytes)
  }

  /** Asks for a name and waits for the verdict. */
  async register(subdomain: unknown): Promise<Message> {
    await this.opened()
    this.send({ type: 'ready', subdomain })
    return this.next('registered', 'subdomain_taken', 'error')
  }

  /** Waits for a message of one of these types and takes it. */
  async next(...types: string[]): Promise<Message> {
    const find = (): number => this.received.findIndex(one => types.includes(String(one.type)))
    await this.until(() => find() !== -1, types.join(' or '))
    return this.received.splice(find(), 1)[0]!
  }

  async closed(): Promise<number> {
    await this.until(() => this.isClosed, 'the socket to close')
    return this.closeCode
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#changed.add(resolve)
      await within(promise, what)
    }
  }

  close(): void {
    this.#socket.close()
  }

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }

  #take(text: string): void {
    const message = JSON.parse(text) as Message // the server under test sends objects, or the test fails
    this.received.push(message)
    if (message.type === 'request') {
      const answer = this.#answers(message, this)
      if (answer !== undefined) this.send({ type: 'response', id: message.id, ...answer })
    }
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#changed) resolve()
    this.#changed.clear()
  }
}
