// An origin on raw sockets: swallows uploads as fast as the kernel hands them over, and serves the same files as nginx.
// GET /NAME: a file; GET / and /json: something small; GET /events: server-sent events; GET /closing: 20 B, and each tenth ends the connection without a word. POST: the number of bytes that came, each of which is compared. Everything else: 404. Each answer repeats method and path in X-Answer.

import type { Socket } from 'bun'
import { ITEMS } from './app.ts'
import { FILE_SIZES, fileBytes, Upload } from './files.ts'

interface Conversation {
  head: string
  /** Body bytes still to come. */
  left: number
  upload: Upload
  path: string
  /** What the kernel did not take yet. */
  waiting: Uint8Array[]
  closing: boolean
}

const answers = new Map<string, Uint8Array>([
  ['/', answer('GET /', 'OK')],
  ['/json', answer('GET /json', JSON.stringify(ITEMS))],
  ...Object.entries(FILE_SIZES).map(
    ([name, size]) => [`/${name}`, answer(`GET /${name}`, fileBytes(size))] as const,
  ),
])
answers.set('/closing', answer('GET /closing', fileBytes(20)))
const CLOSES_EVERY = 10
let closings = 0
const missing = answer('', 'no such file\n', '404 Not Found')

/** Between the two events of `/events`. */
const EVENT_PAUSE_MS = 500

const listener = Bun.listen<Conversation>({
  hostname: process.env.BENCH_LISTEN ?? '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { head: '', left: 0, upload: new Upload(), path: '', waiting: [], closing: false }
      socket.setNoDelay(true)
    },
    data: take,
    drain: flush,
    error() {},
  },
})
console.log(`listening ${listener.port}`)

function take(socket: Socket<Conversation>, chunk: Buffer): void {
  const state = socket.data
  let at = 0
  while (at < chunk.length) {
    if (state.left > 0) {
      const piece = chunk.subarray(at, at + state.left)
      state.upload.take(piece)
      state.left -= piece.length
      at += piece.length
      if (state.left === 0) uploaded(socket)
      continue
    }
    const from = state.head.length
    state.head += chunk.toString('latin1', at)
    // The blank line may straddle two chunks: look again at the last three characters of the one before.
    const end = state.head.indexOf('\r\n\r\n', Math.max(0, from - 3))
    if (end < 0) return
    at += end + 4 - from
    began(socket, state.head.slice(0, end))
    state.head = ''
  }
}

function began(socket: Socket<Conversation>, head: string): void {
  const state = socket.data
  const [method, path = ''] = head.split(' ', 2)
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  if (/\r\nexpect: *100-continue/i.test(head))
    send(socket, new TextEncoder().encode('HTTP/1.1 100 Continue\r\n\r\n'))
  if (method === 'POST' || method === 'PUT') {
    state.left = length
    state.upload = new Upload()
    state.path = `${method} ${path}`
    if (length === 0) uploaded(socket)
    return
  }
  state.closing =
    /\r\nconnection: *close/i.test(head) || (path === '/closing' && ++closings % CLOSES_EVERY === 0)
  if (path === '/events') events(socket)
  else send(socket, answers.get(path) ?? missing)
}

/** One event at once, another one after a while, then the end: an answer that is not there all at once. */
function events(socket: Socket<Conversation>): void {
  const { closing } = socket.data
  socket.data.closing = false
  const type = 'Content-Type: text/event-stream\r\nTransfer-Encoding: chunked'
  const chunk = (data: string): string => `${data.length.toString(16)}\r\n${data}\r\n`
  const text = (bytes: string): Uint8Array => new TextEncoder().encode(bytes)
  send(socket, text(`HTTP/1.1 200 OK\r\n${type}\r\n\r\n${chunk('data: first\n\n')}`))
  setTimeout(() => {
    socket.data.closing = closing
    send(socket, text(`${chunk('data: second\n\n')}0\r\n\r\n`))
  }, EVENT_PAUSE_MS)
}

function uploaded(socket: Socket<Conversation>): void {
  send(socket, answer(socket.data.path, socket.data.upload.verdict))
}

function send(socket: Socket<Conversation>, bytes: Uint8Array): void {
  const { waiting } = socket.data
  waiting.push(bytes)
  if (waiting.length === 1) flush(socket)
}

function flush(socket: Socket<Conversation>): void {
  const { waiting } = socket.data
  while (waiting[0]) {
    const written = socket.write(waiting[0])
    if (written < 0) return
    if (written < waiting[0].length) {
      waiting[0] = waiting[0].subarray(written)
      return
    }
    waiting.shift()
  }
  if (socket.data.closing) socket.end()
}

function answer(name: string, body: string | Uint8Array, status = '200 OK'): Uint8Array {
  const bytes = Buffer.from(body)
  const lines = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/octet-stream',
    `X-Answer: ${name}`,
    `Content-Length: ${bytes.length}`,
  ]
  return new Uint8Array(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes]))
}
