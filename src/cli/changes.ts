// Makes changes one at a time: those asked for in the meantime are made after it, together.

export class Changes {
  readonly #make: (superseded: AbortSignal) => Promise<void>
  readonly #failed: (error: unknown) => void
  #isWanted = false
  #isBusy = true
  #superseding = new AbortController()

  /**
   * Makes the queue. Nothing is made before `begin`. `make` gets a signal that is aborted when another change is asked for:
   * what may take long, such as a server that is away, should not be waited for then. `failed` gets what `make` rejects with.
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
