// A visitor of the simulation: asks one server for one tunnel after the other, and knows to the byte what has to come.

import type { Random } from '../support/random.ts'
import { bodyOf } from './app.ts'
import type { Network } from './network.ts'
import type { Process } from './process.ts'
import type { Socket } from './socket.ts'

/** `ok`: to the byte what the app sends. `refused`: an answer of the server with a code. `failed`: cut, before it was complete. */
export type Outcome =
  | { readonly kind: 'ok' }
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'failed'; readonly why: string }
  /** The worst there is. */
  | { readonly kind: 'wrong'; readonly what: string }

export interface Question {
  /** Name of the tunnel, which is that of its app. */
  readonly name: string
  readonly domain: string
  readonly kind: 'length' | 'chunked' | 'echo' | 'websocket'
  readonly length: number
  readonly pauseMs: number
  readonly nonce: string
}

export function question(random: Random, name: string, domain: string, nonce: string): Question {
  const kind = random.pick(['length', 'length', 'length', 'chunked', 'echo', 'websocket'] as const)
  const length = random.chance(0.1) ? 20_000 + random.below(150_000) : 1 + random.below(3_000)
  return { name, domain, kind, length, pauseMs: random.chance(0.2) ? random.below(3_000) : 0, nonce }
}

/** A connection to a server, for one question after the other. */
export class Visitor {
  readonly #process: Process
  readonly #network: Network
  readonly #address: string
  #socket: Socket | undefined
  #received = ''
  #question: Question | undefined
  #over: (outcome: Outcome) => void = () => {}
  #unsent: Uint8Array = new Uint8Array(0)
  #hasEchoed = false
  #isReused = false

  readonly #strayed: (what: string) => void

  /** `address`: of the server. `strayed`: bytes came that were not asked for. */
  constructor(process: Process, network: Network, address: string, strayed: (what: string) => void) {
    this.#process = process
    this.#network = network
    this.#address = address
    this.#strayed = strayed
  }

  /** Asks, on the connection there is or a new one. `over` is called once. */
  ask(question: Question, over: (outcome: Outcome) => void): void {
    this.#question = question
    this.#over = over
    this.#received = ''
    this.#hasEchoed = false
    this.#unsent = new Uint8Array(0)
    this.#isReused = this.#socket !== undefined
    if (this.#socket !== undefined) return this.#sendRequest()
    const events = {
      data: (socket: Socket, bytes: Uint8Array) => socket === this.#socket && this.#take(bytes),
      drain: () => this.#flush(),
      end: (socket: Socket) => this.#lost(socket, 'FIN'),
      close: (socket: Socket) => this.#lost(socket, 'closed'),
    }
    this.#network.connect(this.#process, { hostname: this.#address, port: 8_080, socket: events }).then(
      socket => {
        if (this.#question !== question) return socket.terminate()
        this.#socket = socket
        this.#sendRequest()
      },
      (error: Error) => {
        if (this.#question === question) this.#end({ kind: 'failed', why: error.message })
      },
    )
  }

  /** Leaves, whatever is under way. */
  leave(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.terminate()
    if (this.#question !== undefined) this.#end({ kind: 'failed', why: 'left' })
  }

  get isIdle(): boolean {
    return this.#question === undefined
  }

  #sendRequest(): void {
    const { kind, length, pauseMs, nonce, name, domain } = this.#question!
    const lines = [`/${kind}/${length}/${pauseMs}/${nonce} HTTP/1.1`, `Host: ${name}.${domain}`]
    const body = kind === 'echo' ? bodyOf('visitor', nonce, length) : ''
    if (kind === 'websocket') lines.push('Connection: Upgrade', 'Upgrade: websocket')
    if (kind === 'echo') lines.push(`Content-Length: ${length}`)
    this.#send(`${kind === 'echo' ? 'POST' : 'GET'} ${lines.join('\r\n')}\r\n\r\n${body}`)
  }

  #take(bytes: Uint8Array): void {
    const text = Buffer.from(bytes).toString('latin1')
    if (this.#question === undefined) return this.#strayed(text.slice(0, 80))
    this.#received += text
    const outcome = this.#read(this.#question)
    if (outcome === undefined) return
    const isClosing = outcome.kind !== 'ok' || /\r\nconnection: close\r\n/i.test(this.#received)
    if (isClosing || this.#question.kind === 'websocket') {
      const socket = this.#socket
      this.#socket = undefined
      socket?.terminate()
    }
    this.#end(outcome)
  }

  /** `undefined`: it is not complete. */
  #read(question: Question): Outcome | undefined {
    const { name, kind, nonce, length } = question
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const head = this.#received.slice(0, end)
    const rest = this.#received.slice(end + 4)
    const status = Number(head.slice(9, 12))
    if (status === 101 && kind === 'websocket') return this.#readEcho(name, nonce, rest)
    const code = /\r\nx-localtunnels-error: (\w+)/i.exec(head)?.[1]
    const body = bodyIn(head, rest)
    if (code !== undefined) return body === undefined ? undefined : { kind: 'refused', code }
    if (status !== 200 || kind === 'websocket') return { kind: 'wrong', what: `an answer of nobody: ${head}` }
    const expected =
      kind === 'echo' ? `${name}:${bodyOf('visitor', nonce, length)}` : bodyOf(name, nonce, length)
    // What has come so far shows whose it is, also where it never gets complete.
    const seen = body ?? (kind === 'chunked' ? '' : rest)
    if (!expected.startsWith(seen))
      return { kind: 'wrong', what: `asked ${name} for ${kind} ${nonce}, got ${seen.slice(0, 80)}` }
    if (body === undefined) return undefined
    return body === expected
      ? { kind: 'ok' }
      : {
          kind: 'wrong',
          what: `${body.length} bytes of ${expected.length} look complete: ${name} ${kind} ${nonce}`,
        }
  }

  /** The app says its own name in front of each piece that came there. */
  #readEcho(name: string, nonce: string, rest: string): Outcome | undefined {
    if (!this.#hasEchoed) {
      this.#hasEchoed = true
      this.#send(`<${nonce}>`)
      return undefined
    }
    const said = rest.replaceAll(`${name}:`, '')
    if (!`<${nonce}>`.startsWith(said) && said !== '' && !isCutName(rest, name))
      return { kind: 'wrong', what: `a WebSocket of ${name} ${nonce} says ${rest.slice(0, 80)}` }
    return said === `<${nonce}>` ? { kind: 'ok' } : undefined
  }

  #lost(socket: Socket, why: string): void {
    // One that this visitor has left.
    if (socket !== this.#socket) return
    this.#socket = undefined
    socket.terminate()
    const question = this.#question
    if (question === undefined) return
    // A server may close a kept connection just when it is asked: then every visitor asks once more.
    if (this.#isReused && this.#received === '')
      return this.ask({ ...question, nonce: `${question.nonce}-again` }, this.#over)
    this.#end({ kind: 'failed', why })
  }

  #end(outcome: Outcome): void {
    this.#question = undefined
    const over = this.#over
    this.#over = () => {}
    over(outcome)
  }

  #send(text: string): void {
    this.#unsent = Buffer.concat([this.#unsent, Buffer.from(text, 'latin1')])
    this.#flush()
  }

  #flush(): void {
    const taken = this.#socket?.write(this.#unsent) ?? 0
    if (taken > 0) this.#unsent = this.#unsent.subarray(taken)
  }
}

/** The end of what came is the beginning of the name. */
function isCutName(text: string, name: string): boolean {
  const said = `${name}:`
  for (let length = 1; length <= said.length; length++) if (text.endsWith(said.slice(0, length))) return true
  return false
}

/** `undefined`: it is not complete. */
function bodyIn(head: string, rest: string): string | undefined {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) return rest.length < Number(length) ? undefined : rest.slice(0, Number(length))
  let body = ''
  for (let at = 0; ; ) {
    const line = rest.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = Number.parseInt(rest.slice(at, line), 16)
    if (size === 0) return rest.startsWith('\r\n', line + 2) ? body : undefined
    if (!(size > 0) || rest.length < line + 4 + size) return undefined
    body += rest.slice(line + 2, line + 2 + size)
    at = line + 4 + size
  }
}
