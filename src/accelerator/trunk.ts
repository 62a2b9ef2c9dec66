// One end of a trunk: a connection that lanes share, so that one write carries the bytes of many lanes.
//
//   lane u32 · length u32 · bytes        of one lane, in their order
//   lane u32 · 0                         this side has no more for the lane; the other side does the same
//
// The end that leaves first still gets what was in transit to it. There is no credit: a lane has one request in
// progress, and leaves with a response that is not small.

import { copyBytes, copyOf } from '../bytes.ts'
import { FAILED, type Kernel, type Room, WOULD_BLOCK } from './kernel.ts'
import { MAX_LANES } from './shared-slots.ts'

export const MAX_LANE_FRAME_BYTES = 65_536
/** The maximum size of one response. */
export const MAX_LANE_ANSWER_BYTES = 131_072
const HEADER_BYTES = 8
/** The size of the send buffer: the responses of one turn of a busy thread. If exceeded, apps and visitors wait. */
const OUT_BYTES = 262_144
/** The room for the last messages of lanes, which cannot wait. A peer that needs more of them than it reads loses the trunk. */
const LAST_WORDS_BYTES = 65_536
/** The size of one read. Shared by all trunks of a thread. */
export const IN_BYTES = 262_144
/** The maximum number of bytes for lanes that the carrier has not announced. If exceeded, the other side invents lanes. */
const MAX_EARLY_BYTES = 1_048_576
/** The maximum number of early frames of a lane: a request, and its last message. */
const MAX_EARLY_FRAMES = 2

export abstract class LaneEndpoint {
  readonly trunk: Trunk
  readonly lane: number
  #hasLeft = false
  #peerHasLeft = false
  #isTorn = false

  constructor(trunk: Trunk, lane: number) {
    this.trunk = trunk
    this.lane = lane
    trunk.endpoints.set(lane, this)
  }

  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Called with bytes of the lane, in the trunk's own buffer. */
  abstract received(room: Room, start: number, end: number): void
  abstract roomAgain(): void
  /** Called when one of the methods above threw: the lane ends, and the others continue. */
  crash(_error: unknown): void {
    this.leave()
  }
  /** Called when the other side has sent its last message for the lane, or the trunk is gone. */
  protected abstract peerIsLeaving(): void
  /** Called when the lane has ended on both sides. `isTorn`: the other side's last message did not come. */
  protected abstract done(isTorn: boolean): void

  /** Sends the last message for the lane. */
  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.trunk.lastWord(this.lane)
    if (this.#peerHasLeft) this.#getUp()
  }

  /** Called by the trunk when the other side has sent its last message. */
  peerLeft(): void {
    if (this.#peerHasLeft) return
    this.#peerHasLeft = true
    if (this.#hasLeft) return this.#getUp()
    this.peerIsLeaving()
  }

  tear(): void {
    this.#isTorn ||= !this.#peerHasLeft
    this.peerLeft()
  }

  #getUp(): void {
    this.trunk.endpoints.delete(this.lane)
    this.done(this.#isTorn)
  }
}

export class Trunk {
  readonly descriptor: number
  readonly endpoints: Map<number, LaneEndpoint> = new Map<number, LaneEndpoint>()
  readonly #kernel: Kernel
  /** The read buffer of all trunks, in turn. */
  readonly #in: Room
  readonly #inView: DataView
  /** The send buffer. A lane may write to it between `reserve` and `commit`. */
  readonly out: Room
  readonly #outView: DataView
  #outEnd = 0
  #isStuck = false
  #isLast = false
  readonly #waiting = new Set<LaneEndpoint>()
  /** The beginning of a frame whose rest is in transit. */
  #rest: Uint8Array | undefined
  /** Frames of lanes that have not begun here. */
  readonly #early: Map<number, (Uint8Array<ArrayBuffer> | 'left')[]> | undefined
  #earlyBytes = 0
  /** Whether the trunk and all its lanes are unusable. */
  isBroken = false

  /** Makes a trunk. `mayBeEarly`: the other side begins lanes, and may announce them on the carrier a little later. */
  constructor(kernel: Kernel, descriptor: number, inRoom: Room, mayBeEarly: boolean) {
    this.#kernel = kernel
    this.descriptor = descriptor
    this.#in = inRoom
    this.#inView = new DataView(inRoom.bytes.buffer)
    this.out = kernel.room(OUT_BYTES + LAST_WORDS_BYTES)
    this.#outView = new DataView(this.out.bytes.buffer)
    this.#early = mayBeEarly ? new Map() : undefined
  }

  /** Gives a new lane the frames that came for it before. */
  begin(endpoint: LaneEndpoint): void {
    const early = this.#early?.get(endpoint.lane)
    if (early === undefined) return
    this.#early?.delete(endpoint.lane)
    for (const piece of early) {
      if (piece === 'left') endpoint.peerLeft()
      else {
        this.#earlyBytes -= piece.length
        copyBytes(piece, 0, piece.length, this.#in.bytes, 0)
        endpoint.received(this.#in, 0, piece.length)
      }
    }
  }

  // ── Sending ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Returns the position in `out` for a frame of up to `most` bytes; -1 if there is no room now: `roomAgain` follows. */
  reserve(endpoint: LaneEndpoint, most: number): number {
    if (this.#outEnd + HEADER_BYTES + most > OUT_BYTES) this.flush()
    if (this.#outEnd + HEADER_BYTES + most <= OUT_BYTES) return this.#outEnd + HEADER_BYTES
    this.#waiting.add(endpoint)
    return -1
  }

  /** Completes the reserved frame with `count` bytes. */
  commit(lane: number, count: number): void {
    this.#outView.setUint32(this.#outEnd, lane)
    this.#outView.setUint32(this.#outEnd + 4, count)
    this.#outEnd += HEADER_BYTES + count
  }

  lastWord(lane: number): void {
    if (this.isBroken) return
    if (this.#outEnd + HEADER_BYTES > this.out.bytes.length) this.isBroken = true
    else this.commit(lane, 0)
  }

  /** Sends the buffered bytes, at the end of each turn of the thread. */
  flush(): void {
    if (this.#outEnd === 0 || this.#isStuck || this.isBroken) return
    const sent = this.#kernel.send(this.descriptor, this.out, this.#outEnd)
    if (sent === FAILED) {
      this.isBroken = true
      return
    }
    const taken = Math.max(sent, 0)
    if (taken < this.#outEnd) this.out.bytes.copyWithin(0, taken, this.#outEnd)
    this.#outEnd -= taken
    this.#isStuck = this.#outEnd > 0
  }

  // ── Receiving ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when the connection changed. `isLast`: the far side sends no more. */
  changed(isLast: boolean): void {
    this.#isLast ||= isLast
    if (this.#isStuck) this.#goOn()
    while (!this.isBroken && this.#read());
  }

  #goOn(): void {
    this.#isStuck = false
    this.flush()
    if (this.#isStuck) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const endpoint of waiting) {
      try {
        if (!endpoint.hasLeft) endpoint.roomAgain()
      } catch (error) {
        endpoint.crash(error)
      }
    }
  }

  /** Reads once. Returns whether there may be more. */
  #read(): boolean {
    const { bytes } = this.#in
    const rest = this.#rest
    const from = rest?.length ?? 0
    if (rest !== undefined) copyBytes(rest, 0, from, bytes, 0)
    const most = bytes.length - from
    const count = this.#kernel.receive(this.descriptor, this.#in, most, from)
    if (count === WOULD_BLOCK) return false
    // After a reset the runtime reads too, so bytes before these may be missing.
    if (count <= 0 || !this.#kernel.isConnected(this.descriptor)) {
      this.isBroken = true
      return false
    }
    const end = from + count
    const at = this.#takeFrames(end)
    this.#rest = at < end ? copyOf(bytes, at, end) : undefined
    // An end that has arrived is not reported again.
    return count === most || this.#isLast
  }

  /** Handles whole frames. Returns the position of the first incomplete one. */
  #takeFrames(end: number): number {
    let at = 0
    while (end - at >= HEADER_BYTES && !this.isBroken) {
      const lane = this.#inView.getUint32(at)
      const length = this.#inView.getUint32(at + 4)
      if (length > MAX_LANE_FRAME_BYTES) {
        this.isBroken = true
        break
      }
      const to = at + HEADER_BYTES + length
      if (to > end) break
      this.#frameArrived(lane, at + HEADER_BYTES, to)
      at = to
    }
    return at
  }

  #frameArrived(lane: number, start: number, end: number): void {
    const endpoint = this.endpoints.get(lane)
    if (endpoint === undefined) return this.#keepEarly(lane, start, end)
    try {
      if (start === end) endpoint.peerLeft()
      else endpoint.received(this.#in, start, end)
    } catch (error) {
      endpoint.crash(error)
    }
  }

  #keepEarly(lane: number, start: number, end: number): void {
    // Only this side can begin a lane, so the frame is invalid.
    if (this.#early === undefined) {
      this.isBroken = true
      return
    }
    const early = this.#early.get(lane) ?? []
    this.#early.set(lane, early)
    early.push(start === end ? 'left' : copyOf(this.#in.bytes, start, end))
    this.#earlyBytes += end - start
    const isTooMuch = this.#earlyBytes > MAX_EARLY_BYTES || this.#early.size > MAX_LANES
    if (isTooMuch || early.length > MAX_EARLY_FRAMES) this.isBroken = true
  }

  close(): void {
    this.isBroken = true
    for (const endpoint of [...this.endpoints.values()]) {
      try {
        endpoint.tear()
      } catch (error) {
        endpoint.crash(error)
      }
    }
  }
}
