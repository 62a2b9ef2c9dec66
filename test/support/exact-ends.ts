// An app and visitors on raw sockets that carry out plans and write down what they saw, without any code of ours.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Plan } from './exact-plans.ts'

/** What one side saw of an exchange. */
export interface Saw {
  readonly id: number
  head: string
  body: Buffer
  trailers: string
  isComplete: boolean
  /** Of a WebSocket. */
  readonly messages: string[]
}

const saw = (id: number): Saw => ({
  id,
  head: '',
  body: Buffer.alloc(0),
  trailers: '',
  isComplete: false,
  messages: [],
})

/** Bytes of a socket, waited for. */
class Reader {
  readonly #socket: Socket
  #bytes: Buffer = Buffer.alloc(0)
  #isOver = false
  #wake = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes])
      this.#wake()
    })
    const over = () => {
      this.#isOver = true
      this.#wake()
    }
    socket.on('end', over).on('close', over).on('error', over)
  }

  /** `false`: no more comes. */
  async more(): Promise<boolean> {
    const before = this.#bytes.length
    while (this.#bytes.length === before && !this.#isOver)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    return this.#bytes.length > before
  }

  async until(end: string): Promise<string | undefined> {
    for (;;) {
      const at = this.#bytes.indexOf(end, 0, 'latin1')
      if (at >= 0) return this.take(at + end.length).toString('latin1')
      if (!(await this.more())) return undefined
    }
  }

  take(count: number): Buffer {
    const taken = this.#bytes.subarray(0, count)
    this.#bytes = this.#bytes.subarray(taken.length)
    return taken
  }

  /** So many bytes, or what there is of them. */
  async exactly(count: number): Promise<Buffer> {
    while (this.#bytes.length < count && (await this.more()));
    return this.take(count)
  }

  async rest(): Promise<Buffer> {
    while (await this.more());
    return this.take(this.#bytes.length)
  }

  get socket(): Socket {
    return this.#socket
  }
}

/** Reads a body, as its head frames it, into `into`. */
async function readBody(reader: Reader, into: Saw, untilClose: boolean): Promise<void> {
  const length = /^content-length: *(\d+)/im.exec(into.head)?.[1]
  if (/^transfer-encoding: *chunked/im.test(into.head)) {
    const pieces: Buffer[] = []
    const keep = () => {
      into.body = Buffer.concat(pieces)
    }
    for (;;) {
      const line = await reader.until('\r\n')
      if (line === undefined) return keep()
      const size = Number.parseInt(line, 16)
      if (size === 0) break
      const piece = await reader.exactly(size)
      pieces.push(piece)
      if (piece.length < size || (await reader.exactly(2)).length < 2) return keep()
    }
    keep()
    for (;;) {
      const line = await reader.until('\r\n')
      if (line === undefined) return
      if (line === '\r\n') break
      into.trailers += line
    }
    into.isComplete = true
  } else if (length !== undefined) {
    into.body = await reader.exactly(Number(length))
    into.isComplete = into.body.length === Number(length)
  } else {
    if (untilClose) into.body = await reader.rest()
    into.isComplete = true
  }
}

async function write(socket: Socket, bytes: Buffer, { random }: Plan): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed; ) {
    const size = random.pick([1 + random.below(9), 1_000, 20_000, 100_000]) ?? 1
    const piece = bytes.subarray(at, at + size)
    at += piece.length
    if (!socket.write(piece))
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
    else if (random.chance(0.3)) await new Promise(resolve => setImmediate(resolve))
  }
}

function frame(text: string, isMasked: boolean, opcode = 1): Buffer {
  const payload = Buffer.from(text)
  const mask = Buffer.from(isMasked ? [1, 2, 3, 4] : [])
  const masked = payload.map((byte, index) => (isMasked ? byte ^ (mask[index % 4] ?? 0) : byte))
  return Buffer.concat([Buffer.from([0x80 | opcode, (isMasked ? 0x80 : 0) | payload.length]), mask, masked])
}

/** Small frames, whole; `undefined`: a close, or the end. */
async function readFrame(reader: Reader): Promise<string | undefined> {
  const [first = 0x88, second = 0] = await reader.exactly(2)
  const mask = second & 0x80 ? await reader.exactly(4) : undefined
  const payload = await reader.exactly(second & 0x7f)
  if ((first & 0xf) !== 1) return undefined
  return Buffer.from(payload.map((byte, index) => byte ^ (mask?.[index % 4] ?? 0))).toString()
}

/** The app. */
export class ExactApp {
  readonly requests: Saw[] = []
  readonly #server: Server
  readonly #plans: readonly Plan[]

  constructor(plans: readonly Plan[]) {
    this.#plans = plans
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, socket => {
      socket.on('error', () => {})
      void this.#serve(new Reader(socket)).finally(() => socket.destroy())
    })
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    // A TCP port.
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.close()
  }

  async #serve(reader: Reader): Promise<void> {
    const { socket } = reader
    for (;;) {
      const head = await reader.until('\r\n\r\n')
      if (head === undefined) return
      const id = Number(/^x-id: (\d+)/im.exec(head)?.[1])
      const plan = this.#plans[id]!
      const request = saw(id)
      request.head = head
      this.requests.push(request)
      await readBody(reader, request, false)
      if (!request.isComplete || plan.abort === 'app-silent') return
      for (const interim of plan.interim) socket.write(interim)
      const answer = Buffer.concat([Buffer.from(plan.responseHead, 'latin1'), plan.framedAnswer])
      if (plan.abort === 'app-answering') {
        await write(
          socket,
          answer.subarray(0, plan.responseHead.length + Math.floor(plan.framedAnswer.length / 2)),
          plan,
        )
        socket.resetAndDestroy()
        return
      }
      await write(socket, answer, plan)
      if (plan.isWebSocket) return await this.#echo(reader, request)
      if (plan.isUntilClose) {
        socket.end()
        return void (await reader.rest())
      }
    }
  }

  async #echo(reader: Reader, request: Saw): Promise<void> {
    for (;;) {
      const text = await readFrame(reader)
      if (text === undefined) break
      request.messages.push(text)
      reader.socket.write(frame(`echo ${text}`, false))
    }
    reader.socket.end(frame('', false, 8))
    await reader.rest()
  }
}

/** Carries out plans on as few connections as they allow. Returns what the visitor saw of each answer. */
export async function visit(port: number, plans: readonly Plan[]): Promise<readonly Saw[]> {
  const answers: Saw[] = []
  let reader: Reader | undefined
  const ahead: Plan[] = []
  for (const [index, plan] of plans.entries()) {
    if (reader === undefined || reader.socket.destroyed) {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      socket.on('error', () => {})
      await once(socket, 'connect')
      reader = new Reader(socket)
    }
    const { socket } = reader
    if (!ahead.includes(plan)) await ask(socket, plan)
    // The next request before this one has its answer.
    const next = plans[index + 1]
    const isEasy = (one: Plan) => one.abort === 'none' && !one.isWebSocket && one.framedBody.length < 2_000
    if (next !== undefined && isEasy(plan) && isEasy(next) && !plan.isUntilClose && plan.random.chance(0.3)) {
      await ask(socket, next)
      ahead.push(next)
    }
    const answer = saw(plan.id)
    answers.push(answer)
    const isOver = await read(reader, plan, answer)
    if (isOver) {
      socket.destroy()
      reader = undefined
      ahead.length = 0
    }
  }
  reader?.socket.destroy()
  return answers
}

async function ask(socket: Socket, plan: Plan): Promise<void> {
  const bytes = Buffer.concat([Buffer.from(plan.head, 'latin1'), plan.framedBody])
  const isCut = plan.abort === 'visitor-asking'
  await write(
    socket,
    isCut ? bytes.subarray(0, plan.head.length + Math.floor(plan.framedBody.length / 2)) : bytes,
    plan,
  )
  if (isCut) socket.destroy()
}

/** Whether the connection is used up. */
async function read(reader: Reader, plan: Plan, answer: Saw): Promise<boolean> {
  for (;;) {
    const head = await reader.until('\r\n\r\n')
    if (head === undefined) return true
    answer.head = head
    if (!/^HTTP\/1\.1 1(?!01)/.test(head)) break
  }
  if (plan.abort === 'visitor-reading') {
    if (plan.responseBody.length > 0) await reader.exactly(1)
    return true
  }
  if (plan.isWebSocket && answer.head.startsWith('HTTP/1.1 101')) {
    for (const message of plan.messages) {
      reader.socket.write(frame(message, true))
      const text = await readFrame(reader)
      if (text !== undefined) answer.messages.push(text)
    }
    reader.socket.write(frame('', true, 8))
    await reader.rest()
    answer.isComplete = true
    return true
  }
  const isEmpty = plan.method === 'HEAD' || /^HTTP\/1\.1 (?:204|304)/.test(answer.head)
  if (isEmpty) answer.isComplete = true
  else await readBody(reader, answer, true)
  return (
    !answer.isComplete ||
    /^connection: *close/im.test(answer.head) ||
    (!/^(?:content-length|transfer-encoding):/im.test(answer.head) && !isEmpty)
  )
}
