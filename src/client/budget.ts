// Bytes that many may hold together, each as much as it needs: one bound for all of them.

export class Budget {
  readonly #maxBytes: number
  #heldBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Counts bytes that are held from now on; negative when they no longer are. `false`: more than there may be. */
  hold(bytes: number): boolean {
    this.#heldBytes += bytes
    return this.#heldBytes <= this.#maxBytes
  }
}
