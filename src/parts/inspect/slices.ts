// Long work in slices: what visitors and apps send goes between them.

const SLICE_MS = 4

export class Slices {
  #until = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() > this.#until
  }

  /** The event loop takes a turn, and another slice begins. */
  async rest(): Promise<void> {
    await new Promise(resolve => setImmediate(resolve))
    this.#until = performance.now() + SLICE_MS
  }
}
