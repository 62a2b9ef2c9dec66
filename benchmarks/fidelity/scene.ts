// What a check has in its hands: a scripted app behind the tunnel and raw visitors in front of it.

import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Endpoint } from '../peers/peer.ts'

/** Tells the requests of checks from those that a tunnel itself sends to the app. */
const MARK = 'X-Check: 1'

/** Longer than any step of a check takes through a tunnel that works. */
export const STEP_MS = 5_000

export class Failed extends Error {}

export function must(claim: boolean, what: string): asserts claim {
  if (!claim) throw new Failed(what)
}

/** One raw connection, on either side. Collects what comes until a step wants it. */
export class Wire {
  readonly socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #state: 'open' | 'ended' | 'reset' = 'open'
  #changed: () => void = () => {}

  constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('data', (piece: Buffer) => {
      this.#received = Buffer.concat([this.#received, piece])
      this.#changed()
    })
    const ended = (state: 'ended' | 'reset') => (): void => {
      if (this.#state === 'open' || state === 'reset') this.#state = state
      this.#changed()
    }
    socket.on('end', ended('ended'))
    socket.on('error', ended('reset'))
    socket.on('close', ended('ended'))
  }

  get state(): 'open' | 'ended' | 'reset' {
    return this.#state
  }

  get text(): string {
    return this.#received.toString('latin1')
  }

  send(text: string | Uint8Array): void {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
  }

  /** Resolves when what came so far satisfies `enough`. */
  async until(what: string, enough: (wire: Wire) => boolean, ms: number = STEP_MS): Promise<void> {
    const deadline = performance.now() + ms
    while (!enough(this)) {
      const left = deadline - performance.now()
      if (left <= 0)
        throw new Failed(
          `${what}: nothing of it in ${ms} ms, but "${this.text.slice(0, 60)}" (${this.#state})`,
        )
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, left)
      this.#changed = resolve
      await promise
      clearTimeout(timer)
    }
  }

  has(text: string, ms?: number): Promise<void> {
    return this.until(`"${text.slice(0, 40)}"`, ({ text: all }) => all.includes(text), ms)
  }

  over(ms?: number): Promise<void> {
    return this.until('the end', ({ state }) => state !== 'open', ms)
  }

  /** Takes the first `bytes` away, or all. */
  take(bytes?: number): string {
    const count = bytes ?? this.#received.length
    const text = this.#received.toString('latin1', 0, count)
    this.#received = this.#received.subarray(count)
    return text
  }

  /** Takes one head, with its blank line. */
  async head(): Promise<string> {
    await this.has('\r\n\r\n')
    return this.take(this.text.indexOf('\r\n\r\n') + 4)
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }
}

/** The app: a listener on which each check waits for the connections that reach it. */
export class ScriptedApp {
  readonly #server: Server
  readonly #arrived: Wire[] = []
  readonly #wires = new Set<Wire>()
  #wanted: ((wire: Wire) => void) | null = null
  isQuiet = true
  /** Counts the checks: what one still waits for is not for the next one. */
  #check = 0

  constructor() {
    this.#server = createServer({ allowHalfOpen: true }, socket => {
      const wire = new Wire(socket)
      this.#wires.add(wire)
      socket.on('close', () => this.#wires.delete(wire))
      if (this.isQuiet) this.#answerProbes(wire)
      else if (this.#wanted) this.#wanted(wire)
      else this.#arrived.push(wire)
    })
  }

  async listen(): Promise<number> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    // A listening TCP server's address is an object.
    return (this.#server.address() as AddressInfo).port
  }

  /** Between checks it answers every request with 200, so that a tunnel can be awaited. */
  #answerProbes(wire: Wire): void {
    void (async () => {
      for (;;) {
        await wire.head()
        wire.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      }
    })().catch(() => {})
  }

  /** From here on connections belong to a check. Those that tunnels keep open are cut. */
  async begin(): Promise<void> {
    this.isQuiet = false
    this.#check++
    this.#arrived.length = 0
    await this.#cut()
  }

  async end(): Promise<void> {
    this.isQuiet = true
    this.#check++
    this.#wanted = null
    this.#arrived.length = 0
    await this.#cut()
  }

  async #cut(): Promise<void> {
    for (const { socket } of this.#wires) socket.destroy()
    this.#wires.clear()
    // Tunnels notice a connection that the app closed a moment later.
    await Bun.sleep(20)
  }

  /** The next connection that brings a request of a check: tunnels may open others in reserve. */
  async next(ms: number = STEP_MS): Promise<Wire> {
    const deadline = performance.now() + ms
    const check = this.#check
    const waiting = [...this.#arrived.splice(0)]
    for (;;) {
      const speaking = waiting.findIndex(({ text }) => text.toLowerCase().includes(MARK.toLowerCase()))
      // What a tunnel asks for itself is answered as by any app.
      const own = waiting.findIndex(({ text }) => text.endsWith('\r\n\r\n'))
      if (speaking < 0 && own >= 0) this.#answerProbes(waiting.splice(own, 1)[0]!)
      if (speaking >= 0) {
        const [wire] = waiting.splice(speaking, 1)
        this.#wanted = null
        this.#arrived.push(...waiting)
        return wire!
      }
      if (performance.now() > deadline || check !== this.#check) throw new Failed('nothing reached the app')
      this.#wanted = wire => void waiting.push(wire)
      await Bun.sleep(2)
    }
  }

  async close(): Promise<void> {
    await this.#cut()
    this.#server.close()
  }
}

export class Scene {
  readonly app: ScriptedApp
  readonly #endpoint: Endpoint
  readonly #visitors: Wire[] = []

  constructor(app: ScriptedApp, endpoint: Endpoint) {
    this.app = app
    this.#endpoint = endpoint
  }

  async visitor(): Promise<Wire> {
    const socket = connect({ host: this.#endpoint.host, port: this.#endpoint.port, allowHalfOpen: true })
    const wire = new Wire(socket)
    this.#visitors.push(wire)
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return wire
  }

  /** A request of the lines given, with Host and what the tunnel insists on. */
  request(line: string, lines: readonly string[] = [], body = ''): string {
    const { hostHeader, headers } = this.#endpoint
    const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    return `${[`${line} HTTP/1.1`, `Host: ${hostHeader}`, MARK, ...own, ...lines].join('\r\n')}\r\n\r\n${body}`
  }

  /** Sends it, and gives the visitor, the app's side, and the head that reached the app. */
  async arrive(text: string): Promise<{ visitor: Wire; app: Wire; head: string }> {
    const visitor = await this.visitor()
    visitor.send(text)
    const app = await this.app.next()
    return { visitor, app, head: await app.head() }
  }

  close(): void {
    for (const { socket } of this.#visitors) socket.destroy()
  }
}
