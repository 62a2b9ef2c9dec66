// What visitors do to a tunnel for hours: large and small, fast and slow, to the end or not. Answers are checked.

import { connect, type Socket } from 'node:net'

export type Outcome = 'whole' | 'left' | 'refused' | 'broken' | 'wrong'

export interface VisitKind {
  readonly name: string
  /** How often, against the other kinds. */
  readonly weight: number
  run(to: Destination): Promise<Outcome>
}

export interface Destination {
  readonly port: number
  readonly host: string
}

const KIB = 1024
/** No visit of an idle machine takes that long: one that does has been forgotten by somebody. */
const STUCK_MS = 30_000

export const KINDS: readonly VisitKind[] = [
  { name: 'small', weight: 40, run: to => download(to, random(2_000)) },
  { name: 'several on one connection', weight: 10, run: several },
  { name: '64 KiB to 2 MiB', weight: 10, run: to => download(to, 64 * KIB + random(2_000 * KIB)) },
  { name: '16 MiB', weight: 1, run: to => download(to, 16 * KIB * KIB) },
  { name: 'upload to 1 MiB', weight: 8, run: to => upload(to, random(KIB * KIB)) },
  { name: 'slow reader', weight: 4, run: to => download(to, 3 * KIB * KIB, { slow: true }) },
  {
    name: 'leaves in the middle',
    weight: 8,
    run: to => download(to, 4 * KIB * KIB, { leaveAt: random(KIB * KIB) }),
  },
  {
    name: 'slow, then leaves',
    weight: 2,
    run: to => download(to, 8 * KIB * KIB, { slow: true, leaveAt: 700 * KIB }),
  },
  { name: 'upload that leaves', weight: 4, run: to => upload(to, KIB * KIB, random(512 * KIB)) },
  { name: 'app that breaks off', weight: 3, run: brokenOff },
  { name: 'WebSocket', weight: 3, run: webSocket },
]

const random = (below: number): number => Math.floor(Math.random() * below)

interface Manner {
  readonly slow?: boolean
  /** Bytes of the answer after which the visitor goes. */
  readonly leaveAt?: number
}

async function download(to: Destination, bytes: number, manner: Manner = {}): Promise<Outcome> {
  const visitor = await Visitor.connect(to)
  visitor.send(`GET /bytes/${bytes} HTTP/1.1\r\nHost: ${to.host}\r\nConnection: close\r\n\r\n`)
  return visitor.answer(bytes, manner)
}

async function upload(to: Destination, bytes: number, leaveAt?: number): Promise<Outcome> {
  const visitor = await Visitor.connect(to)
  visitor.send(
    `POST /echo HTTP/1.1\r\nHost: ${to.host}\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`,
  )
  visitor.send(pattern.subarray(0, leaveAt ?? bytes))
  if (leaveAt === undefined || leaveAt >= bytes) return visitor.answer(bytes)
  return visitor.leave()
}

async function several(to: Destination): Promise<Outcome> {
  const visitor = await Visitor.connect(to)
  for (let count = 0; count < 20; count++) {
    const bytes = random(5_000)
    visitor.send(`GET /bytes/${bytes} HTTP/1.1\r\nHost: ${to.host}\r\n\r\n`)
    const outcome = await visitor.answer(bytes, {}, true)
    if (outcome !== 'whole') return outcome
  }
  return visitor.leave()
}

/** The app promises more than it sends: the visitor must see that something is missing. */
async function brokenOff(to: Destination): Promise<Outcome> {
  const visitor = await Visitor.connect(to)
  visitor.send(`GET /broken HTTP/1.1\r\nHost: ${to.host}\r\nConnection: close\r\n\r\n`)
  const outcome = await visitor.answer(1_000_000)
  return outcome === 'broken' ? 'whole' : outcome === 'whole' ? 'wrong' : outcome
}

async function webSocket(to: Destination): Promise<Outcome> {
  const socket = new WebSocket(`ws://127.0.0.1:${to.port}/ws`, { headers: { Host: to.host } })
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const timer = setTimeout(() => resolve('wrong'), STUCK_MS)
  const most = 1 + random(50)
  let count = 0
  socket.onopen = () => socket.send(`${count}`)
  socket.onmessage = ({ data }) => {
    if (data !== `${count}`) resolve('wrong')
    if (++count < most) socket.send(`${count}`)
    else resolve('whole')
  }
  socket.onerror = () => resolve(count === 0 ? 'refused' : 'broken')
  socket.onclose = () => resolve('broken')
  const outcome = await promise
  clearTimeout(timer)
  if (Math.random() < 0.5) socket.close()
  else socket.terminate()
  return outcome
}

/** Byte n of every body is n mod 251: a byte that is lost or doubled shows at once. */
export const pattern: Buffer = Buffer.alloc(16 * KIB * KIB + 251)
for (let at = 0; at < 251; at++) pattern[at] = at
for (let length = 251; length < pattern.length; length *= 2) pattern.copy(pattern, length, 0, length)

class Visitor {
  readonly #socket: Socket
  #head = ''
  #received = 0
  #manner: Manner = {}
  #expected = 0
  #settle: ((outcome: Outcome) => void) | undefined
  #isWrong = false

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => this.#data(bytes))
    socket.on('close', () => this.#settle?.('broken'))
    socket.on('error', () => this.#settle?.('broken'))
  }

  static connect({ port }: Destination): Promise<Visitor> {
    const { promise, resolve, reject } = Promise.withResolvers<Visitor>()
    const socket = connect(port, '127.0.0.1', () => resolve(new Visitor(socket)))
    socket.once('error', reject)
    return promise
  }

  send(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  async answer(expected: number, manner: Manner = {}, keepsOpen = false): Promise<Outcome> {
    this.#expected = expected
    this.#manner = manner
    this.#head = ''
    this.#received = 0
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.#settle = resolve
    const timer = setTimeout(() => resolve('wrong'), STUCK_MS)
    const outcome = await promise
    clearTimeout(timer)
    this.#settle = undefined
    if (!keepsOpen || outcome !== 'whole') this.#socket.destroy()
    return outcome
  }

  leave(): Outcome {
    if (Math.random() < 0.5) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
    return 'left'
  }

  #data(bytes: Buffer): void {
    let at = 0
    if (!this.#head.includes('\r\n\r\n')) {
      const before = this.#head.length
      this.#head += bytes.toString('latin1')
      const end = this.#head.indexOf('\r\n\r\n')
      if (end === -1) return
      if (!this.#head.startsWith('HTTP/1.1 200 ')) return this.#settle?.('refused')
      at = end + 4 - before
    }
    const body = bytes.subarray(at)
    const from = this.#received % 251
    if (!body.equals(pattern.subarray(from, from + body.length))) this.#isWrong = true
    this.#received += body.length
    if (this.#isWrong || this.#received > this.#expected) return this.#settle?.('wrong')
    if (this.#received === this.#expected) return this.#settle?.('whole')
    if (this.#manner.leaveAt !== undefined && this.#received >= this.#manner.leaveAt) {
      return this.#settle?.(this.leave())
    }
    if (this.#manner.slow) {
      this.#socket.pause()
      setTimeout(() => this.#socket.resume(), 5 + random(30))
    }
  }
}
