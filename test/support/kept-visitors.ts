// Visitors that ask one thing after the other on kept-alive connections, as long as they may, and note what was lost.

import { get, headerOf, statusOf } from './exchange.ts'
import { type RawConnection, rawDial } from './raw.ts'
import { deferred } from './within.ts'

export interface KeptCounts {
  readonly answers: number
  /** By status. */
  readonly byStatus: Readonly<Record<number, number>>
  /** Requests that were sent and not answered, or not with an expected status. */
  readonly failures: readonly string[]
  /** Connections that the server closed behind an answer that did not say so. */
  readonly lastWithoutClose: number
}

export class KeptVisitors {
  readonly #port: number
  readonly #host: string
  readonly #isExpected: (status: number) => boolean
  readonly #all: Promise<void>[]
  readonly #failures: string[] = []
  readonly #byStatus: Record<number, number> = {}
  #answers = 0
  #lastWithoutClose = 0
  #isEnding = false
  #awaited: { readonly count: number; readonly resolve: () => void } | undefined

  /** `isExpected`: the statuses that are no failure; 200 alone unless told. */
  constructor(
    port: number,
    host: string,
    visitors: number,
    isExpected: (status: number) => boolean = status => status === 200,
  ) {
    this.#port = port
    this.#host = host
    this.#isExpected = isExpected
    this.#all = Array.from({ length: visitors }, (_, who) => this.#visit(who))
  }

  /** Resolves once so many requests were answered since the beginning. */
  answers(count: number): Promise<void> {
    const { promise, resolve } = deferred()
    this.#awaited = { count, resolve }
    this.#settle()
    return promise
  }

  /** Each visitor finishes the request under way. */
  async end(): Promise<KeptCounts> {
    this.#isEnding = true
    await Promise.all(this.#all)
    return {
      answers: this.#answers,
      byStatus: this.#byStatus,
      failures: this.#failures,
      lastWithoutClose: this.#lastWithoutClose,
    }
  }

  /** As long as there are connections to be had. */
  async #visit(who: number): Promise<void> {
    for (let round = 0; !this.#isEnding; round++) {
      const visitor = await rawDial(this.#port).catch(() => undefined)
      if (visitor === undefined) return
      await this.#converse(visitor, `${who}-${round}`)
      visitor.socket.terminate()
    }
  }

  async #converse(visitor: RawConnection, name: string): Promise<void> {
    for (let n = 0; ; n++) {
      // FIN between two requests: what is sent from here on was not asked of a server that was there.
      if (n > 0 && (this.#isEnding || visitor.hasEnded || visitor.isClosed)) {
        if (!this.#isEnding) this.#lastWithoutClose++
        return
      }
      const path = `/${name}/${n}`
      await visitor.send(get(this.#host, path))
      const head = await answered(visitor)
      if (head === undefined) {
        // A connection that was never answered may have been one that the listener let go.
        this.#failures.push(`${path}: ${n === 0 ? 'first' : 'kept'}: ${visitor.error?.message ?? 'FIN'}`)
        return
      }
      const status = statusOf(head)
      this.#byStatus[status] = (this.#byStatus[status] ?? 0) + 1
      if (!this.#isExpected(status)) this.#failures.push(`${path}: ${head.split('\r\n')[0]}`)
      this.#answers++
      this.#settle()
      if (headerOf(head, 'connection')?.toLowerCase() === 'close') return
    }
  }

  #settle(): void {
    if (this.#awaited === undefined || this.#answers < this.#awaited.count) return
    this.#awaited.resolve()
    this.#awaited = undefined
  }
}

/** The head of a whole answer with a length; `undefined` when the connection ended first. */
async function answered(visitor: RawConnection): Promise<string | undefined> {
  const isWhole = () => {
    const at = visitor.text.indexOf('\r\n\r\n')
    if (at === -1) return false
    const length = Number(headerOf(visitor.text.slice(0, at + 4), 'content-length') ?? 0)
    return visitor.bytes.length >= at + 4 + length
  }
  await visitor.when(() => isWhole() || visitor.hasEnded || visitor.isClosed, 'an answer or the end')
  if (!isWhole()) return undefined
  const head = visitor.take(visitor.text.indexOf('\r\n\r\n') + 4)
  visitor.take(Number(headerOf(head, 'content-length') ?? 0))
  return head
}
