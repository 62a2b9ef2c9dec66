// Raw visitors that ask one thing after the other on kept-alive connections, and count exactly what they got.

import { get, headerOf, type Message, readAnswer, statusOf } from './exchange.ts'
import { type RawConnection, rawDial } from './raw.ts'

export interface LoadCounts {
  /** By status; a failure of ours by its code. */
  readonly answers: Record<string, number>
  /** Connections that ended before the answer was complete. */
  cut: number
}

export interface LoadOptions {
  readonly port: number
  readonly host: string
  readonly visitors: number
  /** Of each visitor. */
  readonly requests: number
  /** The request with this number; GET of `/<id>` unless told. */
  readonly request?: (id: string) => string
  /** After each answer. */
  readonly answered?: (message: Message, id: string) => void
}

/** Runs until all were asked. One that is cut goes on with a new connection. */
export async function load(options: LoadOptions): Promise<LoadCounts> {
  const { port, host, visitors, requests, answered } = options
  const request = options.request ?? (id => get(host, `/${id}`))
  const counts: LoadCounts = { answers: {}, cut: 0 }
  const visit = async (who: number) => {
    let visitor: RawConnection = await rawDial(port)
    for (let n = 0; n < requests; n++) {
      const id = `${who}-${n}`
      await visitor.send(request(id))
      const message = await answerOf(visitor)
      if (message === undefined) counts.cut++
      else {
        const what = headerOf(message.head, 'x-localtunnels-error') ?? `${statusOf(message.head)}`
        counts.answers[what] = (counts.answers[what] ?? 0) + 1
        answered?.(message, id)
      }
      if (message !== undefined && headerOf(message.head, 'connection') !== 'close') continue
      visitor.socket.terminate()
      visitor = await rawDial(port)
    }
    visitor.socket.terminate()
  }
  await Promise.all(Array.from({ length: visitors }, (_, who) => visit(who)))
  return counts
}

/** `undefined` when the connection ended first. */
async function answerOf(visitor: RawConnection): Promise<Message | undefined> {
  const answer = readAnswer(visitor)
  answer.catch(() => {})
  const closed = visitor.when(() => visitor.isClosed, 'an answer or the end').then(() => undefined)
  closed.catch(() => {})
  const first = await Promise.race([answer, closed])
  // What came before the end may be a whole answer.
  return (
    first ??
    (await Promise.race([answer, new Promise<undefined>(resolve => setImmediate(resolve, undefined))]))
  )
}
