// Bodies of requests that wait for all clients of a pool to take their copies: how many bytes there may be.

/** The server's bounds, as they are now. */
export interface CopyBounds {
  readonly maxCopyBodyBytes: number
  readonly maxCopiedBytes: number
}

export class CopyBodies {
  readonly #boundsNow: () => CopyBounds
  #bytes = 0

  constructor(boundsNow: () => CopyBounds) {
    this.#boundsNow = boundsNow
  }

  /** Of one request. */
  get maxBodyBytes(): number {
    return this.#boundsNow().maxCopyBodyBytes
  }

  /** `false`: there is no room for so many more. */
  readonly take = (bytes: number): boolean => {
    if (this.#bytes + bytes > this.#boundsNow().maxCopiedBytes) return false
    this.#bytes += bytes
    return true
  }

  readonly give = (bytes: number): void => {
    this.#bytes -= bytes
  }
}
