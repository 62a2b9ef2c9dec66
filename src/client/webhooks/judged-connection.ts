// One connection to an app whose requests are judged first: by their head, or when they are complete.

import { BodyFramer } from '../../http/body.ts'
import { ascii, joined, latin1 } from '../../http/characters.ts'
import { parseRequestHead, RequestHead } from '../../http/head.ts'
import { errorAnswer } from '../../http/pages.ts'
import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'
import type { Origin } from '../origin.ts'
import type { Judge, JudgeRefusal } from './judged-origin.ts'

/** Heads were bounded by the server: this is more than any server lets through by default. */
const HEAD_LIMITS = { maxHeadBytes: 1_048_576, maxHeaderCount: 10_000, maxTargetBytes: 1_048_576 }
const CONTINUE = ascii('HTTP/1.1 100 Continue\r\n\r\n')
const EMPTY = new Uint8Array(0)
const SWITCHED = 'HTTP/1.1 101'

type Phase =
  | 'head'
  /** A request that the judge lets pass, or does not look at: its body passes. */
  | 'passing'
  /** Kept until it is complete, for the judge. */
  | 'collecting'
  /** The app is asked to switch protocols; nothing more is taken until it answers. */
  | 'asking'
  /** It did: bytes both ways. */
  | 'switched'
  /** Nothing more is taken. */
  | 'refused'

export async function connectJudged(origin: Origin, handler: SocketHandler, judge: Judge): Promise<Socket> {
  const connection = new JudgedConnection(handler, judge)
  connection.inner = await origin.connect(connection.handler)
  return connection
}

class JudgedConnection implements Socket {
  /** Set before anything but events has the connection. */
  inner!: Socket
  readonly handler: SocketHandler
  readonly #outer: SocketHandler
  readonly #judge: Judge
  readonly #head = new RequestHead()
  readonly #framer: BodyFramer
  #phase: Phase = 'head'
  /** What of the request came so far: its head, and behind it the body where it is kept. */
  #kept: Uint8Array[] = []
  #body: Uint8Array[] = []
  #bodyBytes = 0
  /** On their way to the app. */
  #unsent: Uint8Array[] = []
  #isEndWaiting = false
  #answer = ''

  constructor(outer: SocketHandler, judge: Judge) {
    this.#outer = outer
    this.#judge = judge
    this.#framer = new BodyFramer((bytes, start, end) => this.#collect(bytes, start, end))
    this.handler = {
      received: (bytes, isScratch) => this.#answered(bytes, isScratch),
      drained: () => this.#drained(),
      ended: () => this.#phase !== 'refused' && outer.ended(),
      // The answer in place of the app's was complete.
      closed: error => outer.closed(this.#phase === 'refused' ? undefined : error),
    }
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    let at = start
    while (at < end && this.#unsent.length === 0 && this.#phase !== 'asking') {
      const next = this.#take(bytes, at, end)
      if (next === at) break
      at = next
    }
    return at - start
  }

  /** Takes some of the bytes; what is kept of them is a copy. Returns where to go on. */
  #take(bytes: Uint8Array, at: number, end: number): number {
    switch (this.#phase) {
      case 'head':
        return this.#takeHead(bytes, at, end)
      case 'passing':
      case 'collecting':
        return this.#takeBody(bytes, at, end)
      case 'switched':
        this.#send(bytes.slice(at, end))
        return end
      default:
        return end
    }
  }

  #takeHead(bytes: Uint8Array, at: number, end: number): number {
    const before = this.#kept.reduce((sum, piece) => sum + piece.length, 0)
    const pending = joined([...this.#kept, bytes.subarray(at, end)])
    const headEnd = parseRequestHead(this.#head, pending, 0, pending.length, HEAD_LIMITS)
    if (headEnd === 0) {
      this.#kept = [pending.slice()]
      return end
    }
    if (headEnd < 0) {
      // The server lets no such head through.
      this.terminate()
      return end
    }
    const head = this.#head
    this.#framer.begin(head.body, head.contentLength)
    this.#body = []
    this.#bodyBytes = 0
    const text = pending.slice(0, headEnd)
    const judge = this.#judge
    const isJudged = judge.matches(head.path)
    if (isJudged && judge.readsBody) {
      this.#kept = [text]
      this.#phase = 'collecting'
      if (head.contentLength > judge.maxBodyBytes) this.#refuse({ code: 'BODY_TOO_LARGE' })
      else if (head.expectsContinue) this.#outer.received(CONTINUE.slice())
      if (this.#phase === 'collecting' && this.#framer.complete) this.#decide()
    } else {
      this.#kept = []
      const refusal = isJudged ? judge.refusalOf(head, EMPTY) : undefined
      if (refusal !== undefined) {
        this.#refuse(refusal)
        return end
      }
      this.#phase = head.upgrade !== '' ? 'asking' : this.#framer.complete ? 'head' : 'passing'
      this.#answer = ''
      this.#send(text)
    }
    return at + headEnd - before
  }

  #takeBody(bytes: Uint8Array, at: number, end: number): number {
    const isKept = this.#phase === 'collecting'
    const bodyEnd = this.#framer.feed(bytes, at, end)
    if (bodyEnd === -1) {
      this.terminate()
      return end
    }
    if (isKept && this.#bodyBytes > this.#judge.maxBodyBytes) {
      this.#refuse({ code: 'BODY_TOO_LARGE' })
      return end
    }
    const piece = bytes.slice(at, bodyEnd)
    if (isKept) this.#kept.push(piece)
    else this.#send(piece)
    if (!this.#framer.complete) return bodyEnd
    if (isKept) this.#decide()
    else this.#phase = 'head'
    return bodyEnd
  }

  #collect(bytes: Uint8Array, start: number, end: number): void {
    if (this.#phase !== 'collecting') return
    this.#bodyBytes += end - start
    if (this.#bodyBytes <= this.#judge.maxBodyBytes) this.#body.push(bytes.slice(start, end))
  }

  /** The request is complete. */
  #decide(): void {
    const head = this.#head
    const refusal = this.#judge.refusalOf(head, joined(this.#body))
    if (refusal !== undefined) return this.#refuse(refusal)
    const kept = this.#kept
    this.#kept = []
    this.#body = []
    this.#phase = head.upgrade === '' ? 'head' : 'asking'
    this.#answer = ''
    for (const piece of kept) this.#send(piece)
  }

  /** Answers in place of the app, and ends the connection: the rest of the request is not wanted. */
  #refuse({ code, detail }: JudgeRefusal): void {
    this.#phase = 'refused'
    this.#kept = []
    this.#body = []
    const isHead = this.#head.method === 'HEAD'
    const { host } = this.#head
    this.#outer.received(
      errorAnswer(code, {
        html: false,
        head: isHead,
        keepAlive: false,
        host,
        ...(detail !== undefined && { detail }),
      }),
    )
    this.#outer.ended()
    this.inner.end()
  }

  end(): void {
    if (this.#unsent.length > 0) this.#isEndWaiting = true
    else this.inner.end()
  }

  terminate(): void {
    this.inner.terminate()
  }

  pause(): void {
    this.inner.pause()
  }

  resume(): void {
    this.inner.resume()
  }

  get remoteAddress(): string {
    return this.inner.remoteAddress
  }

  endpoints(): Endpoints | undefined {
    return this.inner.endpoints()
  }

  // ── From the app ───────────────────────────────────────────────────────────────────────────────────────────

  #answered(bytes: Uint8Array, isScratch: boolean | undefined): void {
    if (this.#phase === 'refused') return
    if (this.#phase === 'asking') {
      this.#answer += latin1(bytes, 0, Math.min(bytes.length, SWITCHED.length - this.#answer.length))
      const isKnown = this.#answer.length === SWITCHED.length
      // An interim answer in front of it says nothing yet: the next request waits for the final one.
      if (isKnown) this.#phase = this.#answer === SWITCHED ? 'switched' : 'head'
      this.#outer.received(bytes, isScratch)
      if (isKnown) this.#outer.drained()
      return
    }
    this.#outer.received(bytes, isScratch)
  }

  #send(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#unsent.length > 0) {
      this.#unsent.push(piece)
      return
    }
    const taken = this.inner.write(piece)
    if (taken < piece.length) this.#unsent.push(piece.subarray(taken))
  }

  #drained(): void {
    for (let [piece] = this.#unsent; piece !== undefined; [piece] = this.#unsent) {
      const taken = this.inner.write(piece)
      if (taken < piece.length) {
        this.#unsent[0] = piece.subarray(taken)
        return
      }
      this.#unsent.shift()
    }
    if (this.#isEndWaiting) this.inner.end()
    else this.#outer.drained()
  }
}
