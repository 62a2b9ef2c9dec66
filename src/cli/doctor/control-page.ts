// Requests a page of a server's control host, through the same proxy as the client.

import type { ServerAddress } from '../../client/carriers/server-address.ts'
import { deferred } from '../../deferred.ts'
import type { Dial, SocketHandler } from '../../socket.ts'
import { type AnswerHead, endOfHead, parseAnswerHead } from '../../wire/handshake.ts'

/** The maximum size of a response. */
const MAX_ANSWER_BYTES = 65_536

export interface PageAnswer extends AnswerHead {
  readonly body: string
}

/** Requests the page. Rejects with the error of the dial, or if the response is not HTTP. */
export async function askPage(
  dial: Dial,
  server: ServerAddress,
  path: string,
  timeoutMs: number,
): Promise<PageAnswer> {
  const { promise, resolve, reject } = deferred<PageAnswer>()
  const dialling = new AbortController()
  const timer = setTimeout(() => {
    reject(new Error('nothing came in time'))
    dialling.abort()
  }, timeoutMs)
  let received = Buffer.alloc(0)
  const over = (error?: Error) => {
    const end = endOfHead(received)
    const head = end === -1 ? undefined : parseAnswerHead(received.subarray(0, end))
    if (head !== undefined) resolve({ ...head, body: received.toString('utf8', end) })
    else reject(error ?? new Error('the response is not HTTP'))
  }
  const handler: SocketHandler = {
    received(bytes) {
      received = Buffer.concat([received, bytes])
      if (received.length > MAX_ANSWER_BYTES) over()
    },
    drained() {},
    ended: () => over(),
    closed: over,
  }
  const dialled = dial(server.address, handler, dialling.signal)
  // HTTP/1.0: the body has no chunks and ends with the connection.
  const request = `GET ${server.path}${path} HTTP/1.0\r\nHost: ${server.host}\r\nConnection: close\r\n\r\n`
  dialled.then(socket => socket.write(new TextEncoder().encode(request)), reject)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    dialled.then(
      socket => socket.terminate(),
      () => {}, // the first handler of the promise rejects with it
    )
  }
}
