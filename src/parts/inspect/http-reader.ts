// Turns the bytes of one HTTP connection into entries: requests and their responses, in order.

import { copyOf } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Payload } from '../../http/body.ts'
import { joined } from '../../http/characters.ts'
import type { RequestHead, ResponseHead } from '../../http/head.ts'
import { RequestReader, ResponseReader } from '../../http/message-reader.ts'
import { PROBE_HEADER } from '../../wire/control.ts'
import type { Capture } from './capture.ts'
import { type Entry, type KeptBytes, NOTHING, type Place } from './entry.ts'
import { FROM_APP, TO_APP, type Way } from './flow.ts'
import { EventsReader } from './frames/events.ts'
import { agreedDeflate, type FoundFrame, WebSocketReader } from './frames/websocket.ts'

/** The limits of heads. The server has limits of its own in front, and an origin is the user's own app. */
export const HEAD_LIMITS = {
  maxHeadBytes: 1_048_576,
  maxHeaderCount: 10_000,
  maxTargetBytes: 1_048_576,
  isOption: false,
}

/** The maximum number of stored interim responses of one request. */
const MAX_INTERIM = 32
/** The bytes after an upgrade request that may wait for its response. */
const MAX_EARLY_BYTES = 65_536
/** The time in milliseconds between updates of a response in progress. */
const SHOWN_EVERY_MS = 500

interface Direction<Reader extends RequestReader | ResponseReader> {
  readonly reader: Reader
  /** The bytes after the last chunk: its trailers and the blank line. */
  tail: Uint8Array
  kept: KeptBytes | undefined
}

export class HttpReader {
  readonly #room: Capture
  readonly #place: Place
  readonly #replayOf: number | undefined
  readonly #directions: readonly [Direction<RequestReader>, Direction<ResponseReader>]
  /** The request that is being sent, or was sent last. */
  #asking: Entry | undefined
  /** The entries whose responses are incomplete, in order. */
  readonly #waiting: Entry[] = []
  #upgrade: { readonly entry: Entry; early: Uint8Array[]; earlyBytes: number } | undefined
  /** The readers of both directions after a 101. */
  #switched:
    | { readonly entry: Entry; readonly readers?: readonly [WebSocketReader, WebSocketReader] }
    | undefined
  #events: EventsReader | undefined
  #shownAt = 0
  #now = 0
  /** Whether reading has ended: the next request is not captured, or the bytes are not HTTP. */
  isOver = false

  constructor(room: Capture, place: Place, replayOf: number | undefined) {
    this.#room = room
    this.#place = place
    this.#replayOf = replayOf
    const payload =
      (way: Way): Payload =>
      (bytes, start, end) =>
        this.#payload(way, bytes, start, end)
    const trailer =
      (way: Way): Payload =>
      (bytes, start, end) => {
        const direction = this.#directions[way]
        direction.tail = joined([direction.tail, bytes.subarray(start, end)])
      }
    const fresh = { tail: NOTHING, kept: undefined }
    this.#directions = [
      { reader: new RequestReader(payload(TO_APP), trailer(TO_APP)), ...fresh },
      { reader: new ResponseReader(true, payload(FROM_APP), trailer(FROM_APP)), ...fresh },
    ]
  }

  // ── Bytes ──────────────────────────────────────────────────────────────────────────────────────────────────

  take(way: Way, bytes: Uint8Array, at: number): void {
    if (bytes.length === 0) return
    this.#now = at
    if (this.#switched !== undefined) this.#takeSwitched(way, bytes)
    else if (way === TO_APP) this.#takeRequest(bytes, at)
    else this.#takeAnswer(bytes, at)
  }

  #takeRequest(bytes: Uint8Array, at: number): void {
    let from = 0
    while (from < bytes.length && !this.isOver) {
      const { reader } = this.#directions[TO_APP]
      if (!reader.isComplete) {
        from = reader.body.feed(bytes, from, bytes.length)
        if (from < 0) return this.lose(at)
        if (reader.isComplete) this.#requestEnded(at)
        continue
      }
      if (this.#upgrade !== undefined) return this.#keepEarly(bytes.subarray(from), at)
      if (reader.begunBytes === 0 && !this.#room.takesRequest(at, this.#replayOf !== undefined)) {
        // A request that waits for its response still gets it from the server's report, without bytes.
        if (this.#waiting.length > 0) this.lose(at)
        this.isOver = true
        return
      }
      from = reader.readHead(bytes, from, bytes.length, HEAD_LIMITS)
      if (from < 0) return this.lose(at)
      if (from === 0) return
      this.#beginRequest(reader.head, at)
    }
  }

  #beginRequest(head: RequestHead, at: number): void {
    const { store } = this.#room
    const entry = store.begin('http', this.#place, at)
    entry.method = head.method
    entry.path = head.target
    entry.host = head.hostWithPort
    entry.requestHead = copyOf(head.bytes, head.start, head.end)
    entry.visitor = visitorOf(head)
    entry.replayOf = this.#replayOf
    entry.isProbe = isProbe(head, this.#place, this.#replayOf)
    this.#asking = entry
    this.#waiting.push(entry)
    this.#beginBody(TO_APP, entry.requestBody)
    if (head.upgrade !== '') this.#upgrade = { entry, early: [], earlyBytes: 0 }
    store.grew(entry, entry.requestHead.length)
    this.#room.began(entry)
    if (this.#directions[TO_APP].reader.isComplete) this.#requestEnded(at)
    store.changed(entry)
  }

  #requestEnded(at: number): void {
    const entry = this.#asking
    if (entry === undefined) return
    entry.requestEndMark = at
    entry.requestBody.isComplete = true
    entry.requestTrailers = this.#takeTrailers(TO_APP)
    this.#room.store.grew(entry, entry.requestTrailers.length)
    this.#room.requestEnded(entry)
    // The response ended before the last byte of the request.
    if (entry.endMark !== undefined) this.#finish(entry)
  }

  #takeAnswer(bytes: Uint8Array, at: number): void {
    let from = 0
    while (from < bytes.length && !this.isOver) {
      if (this.#switched !== undefined) return this.#takeSwitched(FROM_APP, bytes.subarray(from))
      const { reader } = this.#directions[FROM_APP]
      const { body } = reader
      if (!body.complete) {
        from = body.feed(bytes, from, bytes.length)
        if (from < 0) return this.#loseAnswer(body.fault, at)
        if (body.complete) this.#answerEnded(at)
        else this.#show(at)
        continue
      }
      const [entry] = this.#waiting
      // A response without a request, such as the 408 of a connection that closes.
      if (entry === undefined || entry.endMark !== undefined) return this.lose(at)
      entry.responseStartMark ??= at
      from = reader.readHead(bytes, from, bytes.length, HEAD_LIMITS, entry.method)
      if (from < 0) return this.#loseAnswer(reader.head.fault, at)
      if (from === 0) return
      this.#beginAnswer(entry, reader.head, at)
    }
  }

  #beginAnswer(entry: Entry, head: ResponseHead, at: number): void {
    const { store } = this.#room
    const bytes = copyOf(head.bytes, head.start, head.end)
    if (head.status < 200 && head.status !== 101) {
      if (entry.interim.length < MAX_INTERIM) entry.interim.push(bytes)
      else entry.isIncomplete = true
      entry.responseStartMark = undefined
      return store.grew(entry, bytes.length)
    }
    entry.status = head.status
    entry.reason = head.reason
    entry.responseHead = bytes
    store.grew(entry, bytes.length)
    if (head.status === 101) return this.#switch(entry, head, at)
    this.#leaveUpgrade(at)
    const isEvents = /^text\/event-stream(?:$|[; ])/i.test(head.header('content-type') ?? '')
    if (isEvents && entry.method !== 'HEAD') {
      entry.kind = 'sse'
      const isPlain = head.header('content-encoding') === undefined
      const { maxBodyBytes } = store.bounds
      if (isPlain) this.#events = new EventsReader(maxBodyBytes, frame => this.#frame(entry, FROM_APP, frame))
    }
    this.#beginBody(FROM_APP, entry.responseBody)
    if (this.#directions[FROM_APP].reader.body.complete) this.#answerEnded(at)
    else store.changed(entry)
  }

  #answerEnded(at: number): void {
    const entry = this.#waiting[0]
    if (entry === undefined) return
    entry.endMark = at
    entry.responseBody.isComplete = true
    this.#events = undefined
    entry.responseTrailers = this.#takeTrailers(FROM_APP)
    this.#room.store.grew(entry, entry.responseTrailers.length)
    if (entry.requestEndMark !== undefined) this.#finish(entry)
  }

  #finish(entry: Entry): void {
    this.#waiting.splice(this.#waiting.indexOf(entry), 1)
    entry.state = 'done'
    this.#room.ended(entry)
  }

  // ── Bodies ─────────────────────────────────────────────────────────────────────────────────────────────────

  #beginBody(way: Way, kept: KeptBytes): void {
    const direction = this.#directions[way]
    direction.tail = NOTHING
    direction.kept = kept
  }

  /** Returns the trailer lines of a complete body, each with its line end. */
  #takeTrailers(way: Way): Uint8Array {
    const direction = this.#directions[way]
    const { tail } = direction
    direction.tail = NOTHING
    // The blank line comes after them.
    return tail.length > 2 ? tail.subarray(0, tail.length - 2) : NOTHING
  }

  #payload(way: Way, bytes: Uint8Array, start: number, end: number): void {
    const entry = way === TO_APP ? this.#asking : this.#waiting[0]
    const { kept } = this.#directions[way]
    if (entry === undefined || kept === undefined) return
    const { store } = this.#room
    const maxBytes = entry.isDropped ? 0 : store.bounds.maxBodyBytes
    store.grew(entry, kept.add(bytes, start, end, maxBytes))
    if (way === FROM_APP) this.#events?.take(bytes, start, end)
  }

  /** Returns the number of bytes of a body with known length that need not be seen, because enough is stored. */
  unseenBytes(way: Way): number {
    const { reader, kept } = this.#directions[way]
    // The last byte is always seen, because ends are handled in one place. Without a known length, none pass unseen.
    return kept?.isCut === true && this.#events === undefined ? Math.max(0, reader.body.leftBytes - 1) : 0
  }

  passed(way: Way, count: number, at: number): void {
    const { reader, kept } = this.#directions[way]
    reader.body.skip(count)
    kept?.skip(count)
    if (way === FROM_APP) this.#show(at)
  }

  #show(at: number): void {
    const [entry] = this.#waiting
    if (entry === undefined || at - this.#shownAt < SHOWN_EVERY_MS) return
    this.#shownAt = at
    this.#room.store.changed(entry)
  }

  // ── Behind an upgrade ──────────────────────────────────────────────────────────────────────────────────────

  #keepEarly(bytes: Uint8Array, at: number): void {
    const upgrade = this.#upgrade!
    upgrade.early.push(bytes)
    upgrade.earlyBytes += bytes.length
    if (upgrade.earlyBytes > MAX_EARLY_BYTES) this.lose(at)
  }

  /** Called when the app refused the upgrade: bytes after the request are another one. */
  #leaveUpgrade(at: number): void {
    const early = this.#upgrade?.early ?? []
    this.#upgrade = undefined
    for (const bytes of early) this.#takeRequest(bytes, at)
  }

  #switch(entry: Entry, head: ResponseHead, at: number): void {
    const early = this.#upgrade?.early ?? []
    this.#upgrade = undefined
    entry.requestEndMark ??= at
    if (head.upgrade === 'websocket') {
      const deflate = agreedDeflate(valuesOf(head, 'sec-websocket-extensions').join(','))
      const reader = (way: Way) =>
        new WebSocketReader(
          this.#room.store.bounds.maxBodyBytes,
          way === TO_APP ? deflate?.toApp : deflate?.fromApp,
          frame => this.#frame(entry, way, frame),
        )
      entry.kind = 'websocket'
      entry.websocket = {
        protocol: head.header('sec-websocket-protocol') ?? '',
        isCompressed: deflate !== undefined,
      }
      this.#switched = { entry, readers: [reader(TO_APP), reader(FROM_APP)] }
    } else this.#switched = { entry }
    this.#room.store.changed(entry)
    for (const bytes of early) this.#takeSwitched(TO_APP, bytes)
  }

  #takeSwitched(way: Way, bytes: Uint8Array): void {
    const { entry, readers } = this.#switched!
    if (way === TO_APP) entry.bytesIn += bytes.length
    else entry.bytesOut += bytes.length
    readers?.[way].take(bytes)
    if (readers?.[way].isBroken === true) entry.isIncomplete = true
  }

  #frame(entry: Entry, way: Way, found: FoundFrame): void {
    const frame = {
      ...found,
      index: entry.totalFrames,
      atMs: Math.round((this.#now - entry.startMark) * 100) / 100,
      from: way === TO_APP ? ('visitor' as const) : ('app' as const),
    }
    this.#room.store.addFrame(entry, frame, frame.keptBytes)
    this.#room.store.changed(entry)
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called for FIN of either side. */
  ended(way: Way, at: number): void {
    const { body } = this.#directions[FROM_APP].reader
    if (way === FROM_APP && this.#switched === undefined && !body.complete && body.ended())
      this.#answerEnded(at)
  }

  closed(at: number, code: ErrorCode | undefined): void {
    const switched = this.#switched?.entry
    this.#switched = undefined
    if (switched !== undefined) {
      this.#waiting.splice(this.#waiting.indexOf(switched), 1)
      switched.endMark = at
      switched.state = code === undefined ? 'done' : 'failed'
      if (code !== undefined) switched.code ??= code
      this.#room.ended(switched)
    }
    for (const entry of this.#waiting.splice(0)) {
      entry.endMark ??= at
      entry.state = 'failed'
      entry.code ??= code ?? 'ORIGIN_CLOSED'
      this.#room.ended(entry)
    }
  }

  /** Ends an entry whose response is invalid, and which the server refuses too. */
  #loseAnswer(fault: string, at: number): void {
    const [entry] = this.#waiting
    if (entry !== undefined) {
      entry.code = 'ORIGIN_INVALID'
      entry.fault = fault
    }
    this.lose(at)
  }

  /** Stops reading, because bytes are missing or cannot be parsed. */
  lose(at: number): void {
    this.isOver = true
    this.#upgrade = undefined
    const entries = this.#waiting.splice(0)
    for (const entry of entries) {
      entry.isIncomplete = true
      entry.endMark ??= at
      entry.state = entry.code === undefined ? 'done' : 'failed'
      this.#room.ended(entry)
    }
  }
}

function valuesOf(head: ResponseHead, name: string): string[] {
  return head.headerList().flatMap(([one, value]) => (one.toLowerCase() === name ? [value] : []))
}

/**
 * Whether the request is the server's probe. A visitor does not know the proof; an app that reveals it hides no more
 * than such requests.
 */
function isProbe(head: RequestHead, { serverProbe }: Place, replayOf: number | undefined): boolean {
  if (serverProbe === undefined || replayOf !== undefined || head.method !== 'HEAD' || head.target !== '/')
    return false
  return head.header(PROBE_HEADER) === serverProbe
}

/** Returns the visitor's address as the server wrote it: the first in X-Forwarded-For. */
function visitorOf(head: RequestHead): string | undefined {
  return head.header('x-forwarded-for')?.split(',')[0]?.trim() || undefined
}
