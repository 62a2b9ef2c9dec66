// One download looked at closely: when its first bytes came, when its last, read at full speed or slowly.

import { connect } from 'node:net'
import type { Endpoint } from '../peers/peer.ts'
import { requestHead } from './load.ts'

export interface Watched {
  readonly status: number
  /** Request sent to the first byte of the body. */
  readonly firstByteMs: number
  readonly totalMs: number
  readonly bytes: number
  readonly isRight: boolean
}

/** `expected`: the body. `pauseMs`: reads nothing for so long after the first body bytes. On node:net, whose pause stops the kernel too. */
export function watchedGet(
  endpoint: Endpoint,
  path: string,
  expected: Uint8Array,
  pauseMs = 0,
): Promise<Watched> {
  const { promise, resolve, reject } = Promise.withResolvers<Watched>()
  const socket = connect(endpoint.port, endpoint.host)
  let head = ''
  let isRight = true
  let [firstByteMs, bytes, began] = [0, 0, 0]
  socket.setTimeout(60_000, () => socket.destroy(new Error('nothing came for 60 s')))
  socket.on('connect', () => {
    began = performance.now()
    socket.write(requestHead(endpoint, 'GET', path, { connection: 'close' }))
  })
  socket.on('data', (chunk: Buffer) => {
    let body = chunk
    if (!head.includes('\r\n\r\n')) {
      head += chunk.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      body = chunk.subarray(chunk.length - (head.length - end - 4))
    }
    isRight &&= Buffer.compare(body, expected.subarray(bytes, bytes + body.length)) === 0
    bytes += body.length
    if (body.length === 0 || firstByteMs > 0) return
    firstByteMs = performance.now() - began
    if (pauseMs === 0) return
    socket.pause()
    setTimeout(() => socket.resume(), pauseMs)
  })
  socket.on('error', reject)
  socket.on('close', () =>
    resolve({
      status: Number(head.slice(9, 12)),
      firstByteMs,
      totalMs: performance.now() - began,
      bytes,
      isRight: isRight && bytes === expected.length,
    }),
  )
  return promise
}
