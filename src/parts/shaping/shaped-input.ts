// Limits the bytes from a visitor: after too many, which were already passed on, no more are read until the rate allows it.

import type { Shape, ShapedTurn } from './shaping.ts'

export interface ShapedSource {
  pause(): void
  resume(): void
}

export class ShapedInput implements ShapedTurn, ShapedSource {
  readonly #shape: Shape
  readonly #source: ShapedSource
  /** Whether too many bytes came. */
  #isHeld = false
  /** Whether the receiver of the bytes has no room. */
  #isPaused = false

  constructor(shape: Shape, source: ShapedSource) {
    this.#shape = shape
    this.#source = source
  }

  /** Counts bytes that came. */
  took(bytes: number): void {
    this.#shape.spend(bytes)
    if (this.#isHeld || !this.#shape.isOver) return
    this.#isHeld = true
    if (!this.#isPaused) this.#source.pause()
    this.#shape.await(this)
  }

  turn(): void {
    if (this.#shape.isOver) return this.#shape.await(this)
    this.#isHeld = false
    if (!this.#isPaused) this.#source.resume()
  }

  pause(): void {
    this.#isPaused = true
    if (!this.#isHeld) this.#source.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isHeld) this.#source.resume()
  }

  /** Called at the end of the exchange: later bytes belong to the next one. */
  close(): void {
    this.#shape.forget(this)
    if (this.#isHeld && !this.#isPaused) this.#source.resume()
    this.#isHeld = false
  }
}
