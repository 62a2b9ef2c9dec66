// One connection to an app whose requests are checked first: by their head, or when they are complete.

import { addPiece, copyOf, SendQueue } from '../../bytes.ts'
import type { Origin } from '../../client/origins/origin.ts'
import { type ErrorCode, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { bodyOf } from '../../http/body.ts'
import { ascii, joined } from '../../http/characters.ts'
import { errorAnswer } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import { RequestReader, ResponseReader } from '../../http/message-reader.ts'
import { LARGEST_TIMES, type Portion, Shares } from '../../shares.ts'
import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'
import { networkOf } from '../../wire/ip-address.ts'

/** Decides which requests the app gets. */
export interface Judge {
  /** Whether it decides about requests to this path, which may have a query. */
  matches(target: string, head: RequestHead): boolean
  /** Whether it reads the body, so that a request is stored until it is complete. */
  readonly readsBody: boolean
  /** The number of body bytes that are stored for it; a longer body gets 413. */
  readonly maxBodyBytes: number
  /** Returns why the app does not get the request. `undefined` if it does. */
  refusalOf(head: RequestHead, body: Uint8Array): JudgeRefusal | undefined
  /** The request for the app, in place of the stored one. Default: the original request. */
  rewritten?(head: RequestHead, body: Uint8Array): readonly Uint8Array[]
}

export interface JudgeRefusal {
  readonly code: ErrorCode
  /** Replaces the meaning of the code. */
  readonly detail?: string
}

/** The limits of heads, above those of every server by default, because the server checked them already. */
const HEAD_LIMITS = { maxHeadBytes: 1_048_576, maxHeaderCount: 10_000, maxTargetBytes: 1_048_576 }
const CONTINUE = ascii('HTTP/1.1 100 Continue\r\n\r\n')
const CLOSE = ascii('Connection: close\r\n')
const EMPTY = new Uint8Array(0)
/**
 * The bytes of all requests of this process that wait for their judges: 32 bodies of the default limit, or five of
 * the largest. One visitor may have a fifth of them.
 */
const MAX_KEPT_BYTES = 33_554_432
const kept = new Shares()
/** The longest wait in milliseconds for the next bytes of a request. */
const NEXT_BYTES_MS = 15_000
/**
 * The longest time in milliseconds for a whole request. Without it, a visitor that sends a byte now and then would
 * keep its place without limit.
 */
const ALL_BYTES_MS = 120_000

type Phase =
  | 'head'
  /** The judge accepted the request, or does not check it: its body is passed on. */
  | 'passing'
  /** The request is stored until it is complete, for the judge. */
  | 'collecting'
  /** The app was asked to switch protocols; nothing more is read until it responds. */
  | 'asking'
  /** The app switched: raw bytes go both ways. */
  | 'switched'
  /** Nothing more is read. */
  | 'refused'

/** Opens a connection. The app is dialled for the first request that it gets. */
export function connectJudged(origin: Origin, handler: SocketHandler, judge: Judge): Socket {
  return new JudgedConnection(origin, handler, judge)
}

class JudgedConnection implements Socket, Portion {
  /** Empty, because all tunnels of this process belong to one user. */
  readonly owner = ''
  visitor = ''
  readonly #origin: Origin
  readonly #outer: SocketHandler
  readonly #judge: Judge
  readonly #request = new RequestReader()
  /** The connection to the app. `undefined` before a request for it, and while it is dialled. */
  #inner: Socket | undefined
  #isDialled = false
  #isOver = false
  #isPaused = false
  #phase: Phase = 'head'
  /** Whether the app may still switch protocols. The body of such a request keeps its own framing. */
  #awaitsSwitch = false
  /** The head of a stored request. */
  #text: Uint8Array = EMPTY
  #body: Uint8Array[] = []
  /** The number of stored bytes that count for this visitor. */
  #keptBytes = 0
  #stopWaiting: (() => void) | undefined
  #stopCollecting: (() => void) | undefined
  /** Bytes for the app that its socket did not take yet. */
  readonly #unsent = new SendQueue()
  #isEndWaiting = false
  readonly #response = new ResponseReader(true)

  constructor(origin: Origin, outer: SocketHandler, judge: Judge) {
    this.#origin = origin
    this.#outer = outer
    this.#judge = judge
  }

  // ── The app ────────────────────────────────────────────────────────────────────────────────────────────────

  #dial(): void {
    this.#isDialled = true
    const handler: SocketHandler = {
      received: bytes => this.#answered(bytes),
      drained: () => this.#drained(),
      ended: () => this.#phase !== 'refused' && this.#outer.ended(),
      // The response in place of the app's was complete.
      closed: error => this.#close(this.#phase === 'refused' ? undefined : error),
    }
    this.#origin.connect(handler).then(
      socket => {
        this.#inner = socket
        if (this.#isOver) return socket.terminate()
        if (this.#isPaused) socket.pause()
        this.#drained()
      },
      (cause: unknown) =>
        this.#close(
          cause instanceof TunnelError ? cause : new TunnelError('ORIGIN_UNREACHABLE', undefined, { cause }),
        ),
    )
  }

  #close(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#forget()
    this.#outer.closed(error)
  }

  /** Closes without a connection to the app whose end could be reported. */
  #closeAlone(): void {
    if (this.#isDialled) this.#inner?.end()
    else queueMicrotask(() => this.#close())
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    let at = start
    while (at < end && this.#unsent.isEmpty && this.#phase !== 'asking') {
      const next = this.#take(bytes, at, end)
      if (next === at) break
      at = next
    }
    return at - start
  }

  /** Takes some of the bytes, and copies those that it stores. Returns the position of the next byte. */
  #take(bytes: Uint8Array, at: number, end: number): number {
    switch (this.#phase) {
      case 'head':
        return this.#takeHead(bytes, at, end)
      case 'passing':
      case 'collecting':
        return this.#takeBody(bytes, at, end)
      case 'switched':
        this.#send(copyOf(bytes, at, end))
        return end
      default:
        return end
    }
  }

  #takeHead(bytes: Uint8Array, at: number, end: number): number {
    const { head } = this.#request
    // The judge may read the head later, and the caller reuses its array.
    const piece = copyOf(bytes, at, end)
    const length = this.#request.readHead(piece, 0, piece.length, HEAD_LIMITS)
    if (length <= 0) {
      // The server forwards no invalid head.
      if (length < 0) this.terminate()
      return end
    }
    const text = textFor(head)
    const judge = this.#judge
    const isJudged = judge.matches(head.path, head)
    if (isJudged && judge.readsBody) {
      this.#text = text
      this.#phase = 'collecting'
      this.visitor = visitorOf(head)
      this.#stopCollecting = eventLoop.after(ALL_BYTES_MS, () => this.#refuse({ code: 'REQUEST_TIMEOUT' }))
      if (!this.#hasRoomFor(text.length)) return end
      if (head.contentLength > judge.maxBodyBytes) this.#refuse({ code: 'BODY_TOO_LARGE' })
      else if (head.expectsContinue) this.#outer.received(CONTINUE.slice())
      if (this.#phase === 'collecting' && this.#request.isComplete) this.#decide()
    } else {
      const refusal = isJudged ? judge.refusalOf(head, EMPTY) : undefined
      if (refusal !== undefined) {
        this.#refuse(refusal)
        return end
      }
      this.#awaitsSwitch = head.upgrade !== ''
      this.#phase = this.#request.isComplete ? this.#behindBody : 'passing'
      this.#send(text)
    }
    return at + length
  }

  get #behindBody(): Phase {
    return this.#awaitsSwitch ? 'asking' : 'head'
  }

  #takeBody(bytes: Uint8Array, at: number, end: number): number {
    const isKept = this.#phase === 'collecting'
    const { body } = this.#request
    const bodyEnd = body.feed(bytes, at, end)
    if (bodyEnd === -1) {
      this.terminate()
      return end
    }
    if (isKept && body.payloadBytes > this.#judge.maxBodyBytes) {
      this.#refuse({ code: 'BODY_TOO_LARGE' })
      return end
    }
    if (isKept && !this.#hasRoomFor(bodyEnd - at)) return end
    const piece = copyOf(bytes, at, bodyEnd)
    if (isKept) addPiece(this.#body, piece)
    else this.#send(piece)
    if (!body.complete) return bodyEnd
    if (isKept) this.#decide()
    else this.#phase = this.#behindBody
    return bodyEnd
  }

  /** Counts bytes to be stored. Returns `false` if there is no room, and the request is refused. */
  #hasRoomFor(count: number): boolean {
    const largest = this.#judge.maxBodyBytes + HEAD_LIMITS.maxHeadBytes
    const most = Math.max(MAX_KEPT_BYTES, LARGEST_TIMES * largest)
    const hasRoom = kept.grow(this, count, most)
    if (hasRoom) this.#keptBytes += count
    else this.giveWay()
    this.#stopWaiting?.()
    this.#stopWaiting = hasRoom
      ? eventLoop.after(NEXT_BYTES_MS, () => this.#refuse({ code: 'REQUEST_TIMEOUT' }))
      : undefined
    return hasRoom
  }

  giveWay(): void {
    this.#refuse({ code: 'TUNNEL_BUSY', detail: 'Too many requests are kept until they are complete.' })
  }

  #forget(): void {
    this.#text = EMPTY
    this.#body = []
    this.#waitNoMore()
    this.#giveBack()
  }

  #waitNoMore(): void {
    this.#stopWaiting?.()
    this.#stopCollecting?.()
    this.#stopWaiting = this.#stopCollecting = undefined
  }

  #giveBack(): void {
    kept.settle(this)
    kept.give('', this.visitor, this.#keptBytes)
    this.#keptBytes = 0
  }

  #decide(): void {
    const { head } = this.#request
    const body = this.#keptBody()
    const refusal = this.#judge.refusalOf(head, body)
    if (refusal !== undefined) return this.#refuse(refusal)
    this.#waitNoMore()
    kept.settle(this)
    this.#awaitsSwitch = head.upgrade !== ''
    this.#phase = this.#behindBody
    const pieces = this.#judge.rewritten?.(head, body) ?? [this.#text, ...this.#body]
    for (const piece of pieces) this.#send(piece)
    this.#text = EMPTY
    this.#body = []
    // The body counts until the app has it.
    if (this.#unsent.isEmpty) this.#giveBack()
  }

  /** Returns the stored body without its framing. */
  #keptBody(): Uint8Array {
    const { head } = this.#request
    if (head.body !== 'chunked') return joined(this.#body)
    const parts: Uint8Array[] = []
    const framer = bodyOf(head, (bytes, start, end) => parts.push(bytes.subarray(start, end)))
    for (const piece of this.#body) framer.feed(piece, 0, piece.length)
    return joined(parts)
  }

  /** Responds in place of the app, and ends the connection: the rest of the request is not needed. */
  #refuse({ code, detail }: JudgeRefusal): void {
    this.#phase = 'refused'
    this.#forget()
    const { method, host } = this.#request.head
    this.#outer.received(
      errorAnswer(code, {
        head: method === 'HEAD',
        keepAlive: false,
        host,
        ...(detail !== undefined && { detail }),
      }),
    )
    this.#outer.ended()
    this.#closeAlone()
  }

  end(): void {
    if (!this.#unsent.isEmpty) this.#isEndWaiting = true
    else this.#closeAlone()
  }

  terminate(): void {
    this.#forget()
    if (this.#inner !== undefined) return this.#inner.terminate()
    // A connection that is being dialled is cut once it is open.
    queueMicrotask(() => this.#close())
  }

  pause(): void {
    this.#isPaused = true
    this.#inner?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#inner?.resume()
  }

  get remoteAddress(): string {
    return this.#inner?.remoteAddress ?? ''
  }

  endpoints(): Endpoints | undefined {
    return this.#inner?.endpoints()
  }

  // ── From the app ───────────────────────────────────────────────────────────────────────────────────────────

  #answered(bytes: Uint8Array): void {
    if (this.#phase === 'refused') return
    const wasAsked = this.#awaitsSwitch
    if (wasAsked) this.#readAnswer(bytes)
    this.#outer.received(bytes)
    if (wasAsked && !this.#awaitsSwitch) this.#outer.drained()
  }

  /** Reads until the final head shows whether the app switches protocols. Interim responses come before it. */
  #readAnswer(bytes: Uint8Array): void {
    const response = this.#response
    let at = 0
    do {
      at = response.readHead(bytes, at, bytes.length, HEAD_LIMITS, this.#request.head.method)
      if (at === 0) return
    } while (at > 0 && !response.isFinal)
    // The server refuses an invalid head.
    this.#awaitsSwitch = false
    if (at > 0 && response.head.status === 101) this.#phase = 'switched'
    else if (this.#phase === 'asking') this.#phase = 'head'
  }

  #send(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#inner === undefined) this.#unsent.keep(piece)
    else this.#unsent.send(this.#inner, piece)
    if (!this.#isDialled) this.#dial()
  }

  #drained(): void {
    const inner = this.#inner
    if (inner === undefined) return
    this.#unsent.flush(inner)
    if (!this.#unsent.isEmpty) return
    if (this.#phase !== 'collecting') this.#giveBack()
    if (this.#isEndWaiting) inner.end()
    else this.#outer.drained()
  }
}

/**
 * Returns the head for the app. An app may leave the body of a request unread in its connection, as Python's `http.server` does,
 * and take it for the next request, which no judge has checked. So a request with a body is the last one on its connection, and
 * `Connection: close` is put before other Connection lines, because some apps read only the first.
 */
function textFor({ body, bytes, start, end, fields }: RequestHead): Uint8Array {
  if (body === 'none') return bytes.subarray(start, end)
  const at = fields.lineStart(0)
  return joined([bytes.subarray(start, at), CLOSE, bytes.subarray(at, end)])
}

/**
 * Returns the visitor's address as the last proxy saw it. A trusted proxy appends the address that it sees, and the
 * server appends the proxy's. Everything before them comes from the visitor.
 */
function visitorOf(head: RequestHead): string {
  const hops = (head.header('x-forwarded-for') || '-').split(',')
  const hop = (hops.at(-2) ?? hops[0]!).trim()
  // Some proxies add the port, which differs for each connection.
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/.exec(hop) ?? []
  return networkOf(bracketed ?? plain ?? (hop || '-'))
}
