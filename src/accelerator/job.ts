// One direction between two sockets, as the thread moves it: large transfers through a pipe in the kernel,
// interactive connections by copying.

import { FAILED, type Kernel, type Pipe, type Room, WOULD_BLOCK } from './kernel.ts'
import type { SharedSlots } from './shared-slots.ts'

export type Side = 'from' | 'to'

/** A command of the main thread to start a splice. */
export interface SpliceOrder {
  readonly slot: number
  readonly from: number
  readonly to: number
  readonly limitBytes: number
}

export type Turn =
  /** The next change of either socket will be reported. */
  | 'waits'
  /** There may be more to move at once. */
  | 'unfinished'
  | 'over'

/** The number of pipes that a thread keeps for its next jobs. */
export const MAX_SPARE_PIPES = 16

/** The number of bytes that one job moves before the others have a turn. */
const TURN_BYTES = 1_048_576

export abstract class Job {
  readonly slot: number
  readonly from: number
  readonly to: number
  movedBytes = 0
  movedAtSweep = -1
  isWaiting = false
  /** Whether the far side of `from` has ended: only bytes that have arrived are left. */
  isLast = false
  failed: Side | undefined
  protected takenBytes = 0
  /** Whether the job reads nothing more. */
  protected hasEnded = false
  /** Whether the job writes nothing more. */
  protected isStuck = false
  /** Whether some of the bytes that were read are missing, so that the rest is unusable. */
  protected isSpoilt = false
  protected readonly kernel: Kernel
  readonly #slots: SharedSlots
  readonly #limitBytes: number

  constructor({ slot, from, to, limitBytes }: SpliceOrder, slots: SharedSlots, kernel: Kernel) {
    this.slot = slot
    this.from = from
    this.to = to
    this.#limitBytes = limitBytes
    this.#slots = slots
    this.kernel = kernel
  }

  /** Moves bytes until none can move, or the turn is over. */
  turn(): Turn {
    const end = this.movedBytes + TURN_BYTES
    while (this.movedBytes < end) {
      const mayGoOn = this.step()
      const isWhole = this.hasEnded || this.takenBytes === this.#limitBytes
      if (this.isSpoilt || this.isStuck || (isWhole && this.heldBytes === 0)) return 'over'
      if (!mayGoOn) return 'waits'
    }
    return 'unfinished'
  }

  get heldBytes(): number {
    return this.takenBytes - this.movedBytes
  }

  /** Returns, once, the bytes that were read and did not reach the other socket. */
  readOut(): Uint8Array<ArrayBuffer> | undefined {
    return this.heldBytes === 0 || this.isSpoilt ? undefined : this.takeHeld(this.heldBytes)
  }

  /** Reads and writes what is possible at once. Returns whether another call may move more now. */
  protected abstract step(): boolean
  protected abstract takeHeld(bytes: number): Uint8Array<ArrayBuffer>

  /** The number of bytes that may still be read. */
  protected get leftBytes(): number {
    return this.#limitBytes - this.takenBytes
  }

  /** Whether the bytes of a read should be written. `count` is the result of the kernel. */
  protected took(count: number): boolean {
    // After a reset the runtime reads too, even if paused: bytes before these may be missing.
    this.isSpoilt = count > 0 && !this.kernel.isConnected(this.from)
    if (count === FAILED || this.isSpoilt) this.failed = 'from'
    if (count <= 0 || this.isSpoilt) {
      this.hasEnded = true
      return false
    }
    this.takenBytes += count
    this.#slots.taken(this.slot, this.takenBytes)
    return true
  }

  /** Whether a write moved bytes. `count` is the result of the kernel. */
  protected passed(count: number): boolean {
    if (count > 0) {
      this.movedBytes += count
      this.#slots.moved(this.slot, this.movedBytes)
      return true
    }
    if (count !== WOULD_BLOCK) {
      this.isStuck = true
      if (count === FAILED) this.failed = 'to'
    }
    return false
  }
}

export class PipedJob extends Job {
  readonly pipe: Pipe

  constructor(order: SpliceOrder, slots: SharedSlots, kernel: Kernel, pipe: Pipe) {
    super(order, slots, kernel)
    this.pipe = pipe
  }

  get sparePipe(): Pipe | undefined {
    if (!this.isSpoilt) return this.pipe
    this.kernel.closePipe(this.pipe)
    return undefined
  }

  protected step(): boolean {
    const took = this.#take()
    return (!this.isSpoilt && this.#pass()) || took
  }

  #take(): boolean {
    const room = Math.min(this.pipe.capacityBytes - this.heldBytes, this.leftBytes)
    if (this.hasEnded || room <= 0) return false
    const count = this.kernel.splice(this.from, this.pipe.writeEnd, room)
    if (count === WOULD_BLOCK) return false
    this.took(count)
    return true
  }

  #pass(): boolean {
    const { heldBytes } = this
    return heldBytes > 0 && this.passed(this.kernel.splice(this.pipe.readEnd, this.to, heldBytes))
  }

  protected takeHeld(bytes: number): Uint8Array<ArrayBuffer> {
    const held = new Uint8Array(bytes)
    for (let at = 0; at < bytes; ) {
      const count = this.kernel.read(this.pipe.readEnd, held.subarray(at))
      if (count <= 0) throw new Error('a pipe holds less than was put into it')
      at += count
    }
    return held
  }
}

/** A job for small pieces: two system calls for each, where a pipe needs four. */
export class CopiedJob extends Job {
  /** The buffer that the jobs of the thread share. Bytes left in it at the end of a step are copied. */
  readonly #room: Room
  #held: Room | undefined

  constructor(order: SpliceOrder, slots: SharedSlots, kernel: Kernel, room: Room) {
    super(order, slots, kernel)
    this.#room = room
  }

  protected step(): boolean {
    return this.#held === undefined ? this.#copy(this.#room) : this.#passHeld(this.#held)
  }

  #copy(room: Room): boolean {
    const most = Math.min(room.bytes.length, this.leftBytes)
    if (this.hasEnded || most <= 0) return false
    const count = this.kernel.receive(this.from, room, most)
    if (count === WOULD_BLOCK || !this.took(count)) return false
    const sent = this.kernel.send(this.to, room, count)
    this.passed(sent)
    if (sent < count) this.#keep(room, Math.max(sent, 0), count)
    // A short read took everything there was. A later change is reported, except for an end that came with these bytes.
    return sent === count && (count === most || this.isLast)
  }

  #passHeld(held: Room): boolean {
    const count = held.bytes.length
    const sent = this.kernel.send(this.to, held, count)
    if (!this.passed(sent)) return false
    this.#held = undefined
    if (sent < count) this.#keep(held, sent, count)
    return sent === count
  }

  #keep(room: Room, start: number, end: number): void {
    this.#held = this.kernel.room(end - start)
    this.#held.bytes.set(room.bytes.subarray(start, end))
  }

  protected takeHeld(): Uint8Array<ArrayBuffer> {
    return this.#held?.bytes ?? new Uint8Array(0)
  }
}
