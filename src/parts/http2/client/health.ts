// A health check of an app that speaks HTTP/2: one GET on a connection of its own. Only the status of the response is read.

import type { HealthProbe } from '../../../client/tunnels/health.ts'
import { ascii } from '../../../http/characters.ts'
import { RequestHead, readWhole } from '../../../http/head.ts'
import { NO_ERROR } from '../../../http2/error-codes.ts'
import { FieldList } from '../../../http2/field-list.ts'
import * as Frame from '../../../http2/frame.ts'
import { FrameDecoder, type FrameHandler } from '../../../http2/frame-decoder.ts'
import { encodeRequestHead, maxHeadBlockBytes } from '../../../http2/head-block.ts'
import { HpackDecoder } from '../../../http2/hpack-decoder.ts'
import { HpackEncoder } from '../../../http2/hpack-encoder.ts'
import { ENABLE_PUSH } from '../../../http2/settings.ts'

/** The maximum size of the response's block. */
const MAX_BLOCK_BYTES = 65_536
const MAX_CONTINUATIONS = 16
/** The maximum number of frames before the response. An app that sends more is unhealthy. */
const MAX_FRAMES = 1_024

/** Makes a probe. `head`: the request as HTTP/1.1 text. `isSecure`: it uses TLS. */
export function probeHttp2(head: string, isSecure: boolean): HealthProbe {
  const request = new RequestHead()
  const text = ascii(head)
  if (!readWhole(request, text)) throw new RangeError('a health check that is no request')
  const into = new Uint8Array(256 + Frame.maxHeadersBytes(maxHeadBlockBytes(request), 16_384))
  into.set(Frame.PREFACE)
  const at = Frame.writeSettings(into, Frame.PREFACE.length, [[ENABLE_PUSH, 0]])
  const terms = { scheme: isSecure ? ('https' as const) : ('http' as const), upgrades: false }
  const blockEnd = encodeRequestHead(new HpackEncoder(), request, terms, into, at + Frame.FRAME_HEADER_BYTES)
  const end = Frame.frameHeaders(into, at, blockEnd, 1, true, Frame.LEAST_MAX_FRAME_BYTES)
  const answer = new Answer()
  return {
    bytes: into.subarray(0, end),
    get fault() {
      return answer.fault
    },
    read: piece => answer.read(piece),
  }
}

class Answer implements FrameHandler {
  readonly #decoder: FrameDecoder = new FrameDecoder(this, {
    role: 'client',
    maxBlockBytes: MAX_BLOCK_BYTES,
    maxContinuations: MAX_CONTINUATIONS,
  })
  readonly #hpack: HpackDecoder = new HpackDecoder({ maxListBytes: MAX_BLOCK_BYTES })
  readonly #fields: FieldList = new FieldList()
  #frames = 0
  #status = 0
  fault = ''

  /** Reads a piece. Returns the status; 0 before it came; -1 if this is not a response. */
  read(piece: Uint8Array): number {
    const broken = this.#decoder.receive(piece, 0, piece.length)
    if (broken === undefined || this.#status !== 0) return this.#status
    this.fault = `it breaks HTTP/2: ${broken.reason}`
    return -1
  }

  frame(): void {
    if (++this.#frames > MAX_FRAMES) this.#refuse(`more than ${MAX_FRAMES} frames came in front of it`)
  }

  headers(
    stream: number,
    _isLast: boolean,
    isMalformed: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    const fields = this.#fields
    if (isMalformed || stream !== 1 || !this.#hpack.decode(bytes, start, end, fields))
      return this.#refuse('its fields cannot be read')
    const status = fields.count > 0 && fields.name(0) === ':status' ? Number(fields.value(0)) : -1
    if (!(status >= 100 && status <= 999)) this.#refuse('it has no status')
    else if (status >= 200) this.#end(status)
  }

  reset(stream: number): void {
    if (stream === 1) this.#refuse('the app reset its stream')
  }

  goaway(lastStream: number): void {
    if (lastStream < 1) this.#refuse('the app refused the connection')
  }

  streamFault(_stream: number, _code: number, reason: string): void {
    this.#refuse(reason)
  }

  // The connection ends with the response, so nothing is acknowledged and no window opens.
  data(): void {}
  dataEnded(): void {}
  settings(): void {}
  settingsAcknowledged(): void {}
  ping(): void {}
  pong(): void {}
  windowUpdate(): void {}

  #refuse(why: string): void {
    if (this.#status === 0) this.fault = why
    this.#end(-1)
  }

  #end(status: number): void {
    if (this.#status === 0) this.#status = status
    this.#decoder.fail(NO_ERROR, '')
  }
}
