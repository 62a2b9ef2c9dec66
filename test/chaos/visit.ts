// Visits: what visitors ask a server for, and what came of it. A connection that is refused, or that nobody takes within a second, goes
// to the next server, as behind a load balancer; whatever was sent is never sent again.

import { connect, type Socket } from 'node:net'
import { body } from '../hostile/scene/pattern.ts'
import { plainFrame } from '../support/websocket.ts'
import { Answer, type Expected, type Judgement, refusalIn } from './answer.ts'

export interface Server {
  readonly host: string
  readonly port: number
}

export interface Asked {
  readonly name: string
  readonly id: number
  readonly bytes: number
  /** Between the pieces of a long answer. */
  readonly everyMs: number
  readonly kind: Kind
}

export type Kind = 'get' | 'post' | 'chunked' | 'long' | 'cut' | 'socket'

/** A load balancer tries another server then. */
const CONNECT_MS = 1_000
/** More than any time that is documented; what takes longer hangs. */
const PATIENCE_MS = 45_000

/** Rejects when the server does not take it. */
export function open({ host, port }: Server): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ host, port, noDelay: true })
  const timer = setTimeout(() => socket.destroy(new Error('nobody takes the connection')), CONNECT_MS)
  socket.once('connect', () => resolve(socket))
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('closed')))
  return promise.finally(() => clearTimeout(timer))
}

/** One request on the connection. `isOpen`: another may follow. */
export async function ask(
  socket: Socket,
  asked: Asked,
  isKept: boolean,
): Promise<{ readonly judgement: Judgement; readonly isOpen: boolean }> {
  const { name, id, bytes, everyMs, kind } = asked
  const expected: Expected = { whose: `${name} ${id}`, id, bytes }
  const answer = new Answer(expected)
  const path = { get: 'bytes', post: 'echo', chunked: 'pieces', long: 'long', cut: 'cut', socket: 'ws' }[kind]
  const lines = [
    `${kind === 'post' ? 'POST' : 'GET'} /${path}?id=${id}&bytes=${bytes}&ms=${everyMs} HTTP/1.1`,
    `Host: ${name}.localhost`,
    ...(kind === 'post' ? [`Content-Length: ${bytes}`] : []),
    ...(isKept ? [] : ['Connection: close']),
  ]
  const { promise, resolve } = Promise.withResolvers<Judgement>()
  const took = (piece: Buffer): void => {
    const judgement = answer.take(piece)
    if (judgement !== undefined) resolve(judgement)
  }
  const failed = (error: NodeJS.ErrnoException): void => resolve(answer.lost(error.code ?? error.message))
  const closed = (): void => resolve(answer.lost('closed'))
  socket.on('data', took)
  socket.on('error', failed)
  socket.on('close', closed)
  const timer = setTimeout(() => resolve(answer.lost(`no end in ${PATIENCE_MS / 1_000} s`)), PATIENCE_MS)
  if (socket.destroyed) closed()
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  if (kind === 'post') socket.write(body(id, bytes))
  const judgement = ofCut(kind, await promise)
  clearTimeout(timer)
  socket.off('data', took)
  socket.off('close', closed)
  socket.off('error', failed)
  // One that is kept may fail before its next request, which is no failure.
  socket.on('error', () => {})
  const isOpen = isKept && judgement === 'right' && kind !== 'cut' && !answer.isLast && !socket.destroyed
  if (!isOpen) socket.destroy()
  return { judgement, isOpen }
}

/** The app breaks off its answer: the visitor must see that. */
function ofCut(kind: Kind, judgement: Judgement): Judgement {
  if (kind !== 'cut') return judgement
  return judgement.endsWith('closed within the answer') || judgement.endsWith('ECONNRESET within the answer')
    ? 'right'
    : judgement
}

const TEXT = 1
const CLOSE = 8

/** A WebSocket on the connection: a message and its echo every `everyMs`, `bytes` times. */
export async function converse(socket: Socket, { name, id, bytes, everyMs }: Asked): Promise<Judgement> {
  const { promise, resolve } = Promise.withResolvers<Judgement>()
  let [count, isOpen, rest] = [0, false, Buffer.alloc(0)]
  const lost = (why: string): void =>
    resolve(isOpen ? `failed: ${why} within the WebSocket` : `failed: ${why}`)
  const say = (): void => {
    const frame = { opcode: TEXT, payload: `${id} ${count}`, mask: [1, 2, 3, 4] } as const
    if (!socket.destroyed) socket.write(plainFrame(frame))
  }
  const took = (text: string): void => {
    if (text !== `${name} ${id} ${count}`) return resolve('wrong')
    if (++count === bytes) return resolve('right')
    setTimeout(say, everyMs)
  }
  socket.on('data', (piece: Buffer) => {
    rest = Buffer.concat([rest, piece])
    if (!isOpen) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = rest.toString('latin1', 0, end + 2)
      if (!head.startsWith('HTTP/1.1 101 ')) return resolve(refusalIn(head))
      isOpen = true
      rest = rest.subarray(end + 4)
      say()
    }
    // Messages are short: one byte has the length.
    while (rest.length >= 2 && rest.length >= 2 + rest[1]!) {
      const [opcode, length] = [rest[0]! & 15, rest[1]!]
      if (opcode === CLOSE) return lost('closed')
      if (opcode !== TEXT || length > 125) return resolve('wrong')
      took(rest.toString('latin1', 2, 2 + length))
      rest = rest.subarray(2 + length)
    }
  })
  socket.on('error', (error: NodeJS.ErrnoException) => lost(error.code ?? error.message))
  socket.on('close', () => lost('closed'))
  const timer = setTimeout(() => lost(`no end in ${PATIENCE_MS / 1_000} s`), PATIENCE_MS)
  const fields = `Host: ${name}.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13`
  socket.write(
    `GET /ws?id=${id} HTTP/1.1\r\n${fields}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
  )
  const judgement = await promise
  clearTimeout(timer)
  socket.end(plainFrame({ opcode: CLOSE, mask: [1, 2, 3, 4] }))
  // It has a second to answer.
  setTimeout(() => socket.destroy(), 1_000)
  return judgement
}
