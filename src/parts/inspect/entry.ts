// An exchange as the inspector stores it: bytes and times. view.ts makes the API's form of it.

import { copyOf } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { ExchangeKind, ExchangeState, Frame, Verified } from '../../exchange.ts'
import { joined } from '../../http/characters.ts'

/** The first bytes of something, up to a limit, and the number of all its bytes. */
export class KeptBytes {
  totalBytes = 0
  keptBytes = 0
  isComplete = false
  #pieces: Uint8Array[] = []

  /** Counts bytes[start, end), and copies those below `maxBytes`. Returns the number of copied bytes. */
  add(bytes: Uint8Array, start: number, end: number, maxBytes: number): number {
    this.totalBytes += end - start
    const room = Math.min(end - start, maxBytes - this.keptBytes)
    // Bytes after a gap cannot be stored.
    if (room <= 0 || this.totalBytes - (end - start) > this.keptBytes) return 0
    this.#pieces.push(copyOf(bytes, start, start + room))
    this.keptBytes += room
    return room
  }

  /** Counts bytes that were not seen. */
  skip(count: number): void {
    this.totalBytes += count
  }

  get bytes(): Uint8Array {
    if (this.#pieces.length !== 1) this.#pieces = [joined(this.#pieces)]
    return this.#pieces[0]!
  }

  get isCut(): boolean {
    return this.keptBytes < this.totalBytes
  }

  /** Makes a body that was stored in a file. */
  static of(bytes: Uint8Array, totalBytes: number, isComplete: boolean): KeptBytes {
    const kept = new KeptBytes()
    kept.#pieces = [bytes]
    kept.keptBytes = bytes.length
    kept.totalBytes = totalBytes
    kept.isComplete = isComplete
    return kept
  }
}

export const NOTHING: Uint8Array = new Uint8Array(0)

/** The size of an entry without content: its object, strings and place in the maps. Measured in Bun 1.4.5: 900 to 1,300. */
const ENTRY_BYTES = 1_200

export interface Place {
  /** The tunnel's public name, which the server chose. */
  readonly tunnel: string
  readonly service: string
  /** Whether the app speaks HTTP/2. The HTTP/1.1 shown was then never sent, and cannot be sent again. */
  readonly isHttp2?: boolean
  readonly serverProbe?: string | undefined
}

export class Entry {
  readonly id: number
  readonly place: Place
  kind: ExchangeKind
  state: ExchangeState = 'open'
  /** The beginning, in milliseconds since the epoch, and on the clock of `marks`. */
  startedAt: number
  readonly startMark: number
  method = ''
  path = ''
  host = ''
  status = 0
  reason = ''
  code: ErrorCode | undefined
  /** The fault of the app's response, if the code does not say everything. */
  fault: string | undefined
  isRefused = false
  /** Whether the server sent the request to check the app. */
  isProbe = false
  visitor: string | undefined
  requestHead: Uint8Array = NOTHING
  responseHead: Uint8Array = NOTHING
  readonly interim: Uint8Array[] = []
  requestBody: KeptBytes = new KeptBytes()
  responseBody: KeptBytes = new KeptBytes()
  /** The lines after the last chunk, without the blank line. */
  requestTrailers: Uint8Array = NOTHING
  responseTrailers: Uint8Array = NOTHING
  /** The time when the request was complete. `undefined` before. */
  requestEndMark: number | undefined
  responseStartMark: number | undefined
  endMark: number | undefined
  waitingMs: number | undefined
  /** The stored messages and events. The first has the index `droppedFrames`. */
  frames: Frame[] = []
  droppedFrames = 0
  framesTotalBytes = 0
  framesKeptBytes = 0
  websocket: { readonly protocol: string; readonly isCompressed: boolean } | undefined
  bytesIn = 0
  bytesOut = 0
  replayOf: number | undefined
  isPinned = false
  note = ''
  verified: Verified | undefined
  /** The name of a webhook's event, or of a GraphQL operation. */
  event: string | undefined
  isIncomplete = false
  /** The number of bytes that count in the store's memory. */
  memoryBytes: number = ENTRY_BYTES
  /** Whether the store dropped the entry, so that no more of it is stored. */
  isDropped = false

  constructor(id: number, kind: ExchangeKind, place: Place, startMark: number) {
    this.id = id
    this.kind = kind
    this.place = place
    this.startMark = startMark
    this.startedAt = Date.now() - (performance.now() - startMark)
  }

  get totalFrames(): number {
    return this.droppedFrames + this.frames.length
  }
}
