// The copies of one request, and which of their responses the visitor gets.
//
// `first`: the first response below 400; if there is none, the first of all. So one failing app does not make a
// sender repeat a webhook that the others accepted. A label: the response of that client, whatever it is; while that
// client is away, its app cannot be reached, or its filter refuses the request, as `first`. A status: it is sent at
// once. Copies whose responses do not count are still delivered. Another server gets one copy for all of its clients,
// responds with the one that counts there, and says whether it is the named client's.

import { reasonOf } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Visit } from '../../server/contracts/upstream.ts'
import { Copy } from './copy.ts'
import type { CopyHost } from './copying.ts'

export class Copies {
  /** The visitor. `undefined` after the response, or if the visitor left. */
  #visitor: Visit | undefined
  readonly #head: RequestHead
  readonly #host: CopyHost
  readonly #ended: () => void
  readonly #copies: Copy[] = []
  /** The copies with an outcome, in the order of their outcomes. */
  readonly #answers = new Set<Copy>()
  #named: Copy | undefined
  #winner: Copy | undefined
  #isStarting = true
  #open = 0

  /** Makes the copies. `ended` is called when none is in progress any more. */
  constructor(visitor: Visit, host: CopyHost, ended: () => void) {
    this.#visitor = visitor
    // The visitor's next request may come while copies are in progress.
    this.#head = visitor.head.clone()
    this.#head.requestId = visitor.head.requestId
    this.#head.traceparent = visitor.head.traceparent
    this.#host = host
    this.#ended = ended
  }

  start(pieces: readonly Uint8Array[]): void {
    const visitor = this.#visitor
    if (visitor === undefined) return
    const { recipients, answer, isForServer } = this.#host
    const host = { answered: (copy: Copy) => this.#answered(copy), ended: () => this.#copyEnded() }
    for (const recipient of recipients) {
      const { upstream, label } = recipient
      if (upstream === undefined) continue
      const isNamed = label !== undefined && label === answer
      const copy = new Copy(recipient, this.#head, pieces, visitor, host, isNamed, isForServer)
      this.#open++
      this.#copies.push(copy)
      if (copy.isNamed) this.#named ??= copy
      copy.begin(upstream)
    }
    this.#isStarting = false
    if (typeof answer === 'number') this.#answerWith(visitor, answer)
    else this.#decide()
    if (this.#open === 0) this.#ended()
  }

  /** Called when the visitor takes more of the response. */
  drained(): void {
    this.#winner?.drained()
  }

  /** Called when the visitor left. The copies continue, because they are for the apps. */
  abandoned(): void {
    this.#visitor = undefined
    this.#winner = undefined
    for (const copy of this.#copies) copy.drop()
  }

  /** Called when the response of a copy has begun, or there will be none. */
  #answered(copy: Copy): void {
    this.#answers.add(copy)
    if (!this.#isStarting) this.#decide()
  }

  #decide(): void {
    const visitor = this.#visitor
    if (visitor === undefined || this.#winner !== undefined) return
    const named = this.#named
    if (named?.outcome === 'pending') return
    if (named?.outcome === 'answered') return this.#win(named, visitor)
    if (this.#isByName) {
      const servers = this.#copies.filter(({ recipient }) => recipient.isServer === true)
      const other = servers.find(({ isNamed }) => isNamed)
      if (other !== undefined) return this.#win(other, visitor)
      if (servers.some(({ outcome }) => outcome === 'pending')) return
    }
    const answers = [...this.#answers]
    const answered = answers.filter(({ outcome }) => outcome === 'answered')
    const good = answered.find(({ status }) => status < 400)
    if (good !== undefined) return this.#win(good, visitor)
    if (answers.length < this.#copies.length) return
    const [first] = answered
    if (first !== undefined) return this.#win(first, visitor)
    this.#visitor = undefined
    const failed = answers.find(({ outcome }) => outcome === 'failed')
    // CLUSTER_MOVED: the server that had clients of the tunnel has none any more.
    const code = failed?.code === 'CLUSTER_MOVED' ? 'CLIENT_GONE' : failed?.code
    visitor.fail(code ?? (answers.length === 0 ? 'CLIENT_GONE' : 'FILTERED_OUT'))
  }

  /** Whether the response of a named client counts. It may be at another server. */
  get #isByName(): boolean {
    const { answer } = this.#host
    return typeof answer === 'string' && answer !== 'first'
  }

  #win(winner: Copy, visitor: Visit): void {
    this.#winner = winner
    winner.recipient.won()
    for (const copy of this.#copies) if (copy !== winner) copy.drop()
    winner.answerTo(visitor)
  }

  #answerWith(visitor: Visit, status: number): void {
    this.#visitor = undefined
    for (const copy of this.#copies) copy.drop()
    const length = status === 204 ? '' : 'Content-Length: 0\r\n'
    const connection = visitor.keepsAlive ? 'keep-alive' : 'close'
    const lines = visitor.answerLines ?? new Uint8Array()
    visitor.answered(status)
    visitor.write(
      Buffer.concat([
        Buffer.from(`HTTP/1.1 ${status} ${reasonOf(status)}\r\n${length}Connection: ${connection}\r\n`),
        lines,
        Buffer.from('\r\n'),
      ]),
    )
    visitor.done(visitor.keepsAlive)
  }

  #copyEnded(): void {
    if (--this.#open === 0 && !this.#isStarting) this.#ended()
  }
}
