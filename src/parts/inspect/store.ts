// The stored entries: a ring limited by memory, number and frames. The oldest entry that is not pinned is dropped first.

import { TunnelError } from '../../errors.ts'
import { Events } from '../../events.ts'
import type { Bounds, ExchangeKind, Frame } from '../../exchange.ts'
import { Entry, type Place } from './entry.ts'

export interface StoreEvents {
  changed: Entry
  ended: Entry
  frame: { readonly entry: Entry; readonly frame: Frame }
  removed: readonly Entry[]
}

/** The size of a frame without content. */
const FRAME_BYTES = 200

export class ExchangeStore extends Events<StoreEvents> {
  readonly bounds: Bounds
  /** The entries by id, the oldest first. */
  readonly #entries = new Map<number, Entry>()
  #lastId = 0
  memoryBytes = 0
  frames = 0
  pinned = 0
  /** The number of entries dropped because a limit was reached. */
  dropped = 0

  constructor(bounds: Bounds) {
    super()
    this.bounds = bounds
  }

  get size(): number {
    return this.#entries.size
  }

  /** The latest entry of a visitor or of the user, without probes. */
  get latest(): Entry | undefined {
    return this.newestFirst().find(({ isProbe }) => !isProbe)
  }

  get(id: number): Entry | undefined {
    return this.#entries.get(id)
  }

  /** Returns the entries, the oldest first. */
  entries(): IterableIterator<Entry> {
    return this.#entries.values()
  }

  newestFirst(): Entry[] {
    return [...this.#entries.values()].reverse()
  }

  begin(kind: ExchangeKind, place: Place, startMark: number): Entry {
    const entry = new Entry(++this.#lastId, kind, place, startMark)
    this.#add(entry)
    return entry
  }

  /** Adds an entry of an earlier run. Call it with rising ids. */
  restore(entry: Entry): void {
    // The client was closed and connects again: the entry is already here.
    if (this.#entries.has(entry.id)) return
    this.#lastId = Math.max(this.#lastId, entry.id)
    if (entry.isPinned) this.pinned++
    this.frames += entry.frames.length
    this.#add(entry)
  }

  /** Makes later ids larger than those of entries that an earlier run dropped. */
  skipIds(lastId: number): void {
    this.#lastId = Math.max(this.#lastId, lastId)
  }

  #add(entry: Entry): void {
    this.#entries.set(entry.id, entry)
    this.memoryBytes += entry.memoryBytes
    this.#makeRoom(entry)
  }

  /** Counts `bytes` more that the entry stores. */
  grew(entry: Entry, bytes: number): void {
    if (entry.isDropped || bytes === 0) return
    entry.memoryBytes += bytes
    this.memoryBytes += bytes
    if (this.memoryBytes > this.bounds.memoryBytes) this.#makeRoom(entry)
  }

  addFrame(entry: Entry, frame: Frame, keptBytes: number): void {
    entry.framesTotalBytes += frame.totalBytes
    if (entry.isDropped) return
    entry.frames.push(frame)
    entry.framesKeptBytes += keptBytes
    this.frames++
    this.grew(entry, FRAME_BYTES + keptBytes)
    while (this.frames > this.bounds.maxFrames) this.#dropOldestFrame(entry)
    if (this.hasListeners('frame')) this.emit('frame', { entry, frame })
  }

  changed(entry: Entry): void {
    if (!entry.isDropped) this.emit('changed', entry)
  }

  ended(entry: Entry): void {
    if (entry.isDropped) return
    this.emit('changed', entry)
    this.emit('ended', entry)
  }

  /** Pins or unpins an entry. Throws `STATE_INVALID` if pins would use more than half of a limit. */
  pin(entry: Entry, isPinned: boolean): void {
    if (entry.isPinned === isPinned) return
    if (isPinned) this.#checkPin(entry)
    entry.isPinned = isPinned
    this.pinned += isPinned ? 1 : -1
    this.changed(entry)
  }

  #checkPin(entry: Entry): void {
    const { memoryBytes, maxExchanges, maxFrames } = this.bounds
    let [bytes, frames] = [entry.memoryBytes, entry.frames.length]
    for (const one of this.#entries.values()) {
      if (!one.isPinned) continue
      bytes += one.memoryBytes
      frames += one.frames.length
    }
    const isTooMuch =
      bytes * 2 > memoryBytes || frames * 2 > maxFrames || (this.pinned + 1) * 2 > Math.max(maxExchanges, 2)
    if (isTooMuch)
      throw new TunnelError('STATE_INVALID', 'Pinned exchanges use half of what the inspector keeps already.')
  }

  remove(entries: readonly Entry[]): void {
    const removed = entries.filter(entry => this.#forget(entry))
    if (removed.length > 0) this.emit('removed', removed)
  }

  #forget(entry: Entry): boolean {
    if (!this.#entries.delete(entry.id)) return false
    entry.isDropped = true
    this.memoryBytes -= entry.memoryBytes
    this.frames -= entry.frames.length
    if (entry.isPinned) this.pinned--
    return true
  }

  #makeRoom(newest: Entry): void {
    const { memoryBytes, maxExchanges } = this.bounds
    const removed: Entry[] = []
    while (this.memoryBytes > memoryBytes || this.#entries.size > maxExchanges) {
      const oldest = this.#oldest(newest)
      if (oldest === undefined || !this.#forget(oldest)) break
      removed.push(oldest)
    }
    this.dropped += removed.length
    if (removed.length > 0) this.emit('removed', removed)
  }

  /** Returns the entry to drop first: ended ones before open ones, and `newest` only if nothing else is left. */
  #oldest(newest: Entry): Entry | undefined {
    let open: Entry | undefined
    for (const entry of this.#entries.values()) {
      if (entry.isPinned || entry === newest) continue
      if (entry.state !== 'open') return entry
      open ??= entry
    }
    return open ?? (this.memoryBytes > this.bounds.memoryBytes ? newest : undefined)
  }

  #dropOldestFrame(newest: Entry): void {
    for (const entry of this.#entries.values()) {
      if (entry.frames.length === 0 || (entry.isPinned && entry !== newest)) continue
      // Drops a tenth at once, because removing the first element of an array costs as much as removing many.
      const count = Math.max(1, Math.min(entry.frames.length, Math.floor(this.bounds.maxFrames / 10)))
      const gone = entry.frames.splice(0, count)
      const bytes = gone.reduce((sum, frame) => sum + frame.keptBytes, 0)
      entry.droppedFrames += count
      entry.framesKeptBytes -= bytes
      entry.memoryBytes -= bytes + count * FRAME_BYTES
      this.memoryBytes -= bytes + count * FRAME_BYTES
      this.frames -= count
      return
    }
  }
}
