// Makes changes one at a time. Those requested during a change are made after it, together.

export class Changes {
  readonly #make: (superseded: AbortSignal) => Promise<void>
  readonly #failed: (error: unknown) => void
  #isWanted = false
  #isBusy = true
  #superseding = new AbortController()

  /**
   * Makes the queue. Nothing is changed before `begin`. `make` gets a signal that is aborted when another change is requested:
   * stop waiting then for anything slow, such as a server that is away. `failed` gets the errors of `make`.
   */
  constructor(make: (superseded: AbortSignal) => Promise<void>, failed: (error: unknown) => void) {
    this.#make = make
    this.#failed = failed
  }

  begin(): void {
    this.#isBusy = false
    if (this.#isWanted) void this.#run()
  }

  ask(): void {
    this.#isWanted = true
    this.#superseding.abort()
    if (!this.#isBusy) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isBusy = true
    try {
      while (this.#isWanted) {
        this.#isWanted = false
        this.#superseding = new AbortController()
        await this.#make(this.#superseding.signal)
      }
    } catch (error) {
      this.#failed(error)
    } finally {
      this.#isBusy = false
    }
  }
}
