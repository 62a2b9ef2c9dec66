// A connection of Bun that another thread borrows: the directions that are lent, and the events that wait for their return.

import type { LentWays, Loan, LoanFault } from '../socket.ts'

/** The connection. `Lending` calls these methods after the other thread has returned it. */
export interface Lender {
  end(): void
  farSideEnded(): void
  /** Called when the connection is gone: calls its handler. */
  reportClosed(): void
  failed(error: Error): void
  /** Called when the far side reset the connection. */
  broke(): void
  /** Called when bytes of the connection were lost. */
  lose(): void
  /** Resumes reading, unless its handler or a large transfer pauses it. */
  readOn(): void
}

type Stop = () => void

export class Lending {
  readonly #lender: Lender
  /** The functions that ask for each direction back. `undefined` if it is not lent. */
  #reading: Stop | undefined
  #writing: Stop | undefined
  /** Whether an end arrived during the loan. */
  #isEndDue = false
  #isFarEndDue = false
  #isCloseDue = false

  constructor(lender: Lender) {
    this.#lender = lender
  }

  get isRead(): boolean {
    return this.#reading !== undefined
  }

  get isWritten(): boolean {
    return this.#writing !== undefined
  }

  get isLent(): boolean {
    return this.isRead || this.isWritten
  }

  /** Whether the connection is gone and its handler was not called yet. */
  get isCloseDue(): boolean {
    return this.#isCloseDue
  }

  lend(ways: LentWays, descriptor: number, stop: Stop): Loan | undefined {
    const [reads, writes] = [ways !== 'writing', ways !== 'reading']
    if (this.#isCloseDue || (reads && this.isRead) || (writes && this.isWritten)) return undefined
    if (reads) this.#reading = stop
    if (writes) this.#writing = stop
    return {
      descriptor,
      giveBack: () => {
        if (reads) this.#reading = undefined
        if (writes) this.#writing = undefined
      },
      goOn: fault => this.#goOn(reads, fault),
    }
  }

  stop(): void {
    this.#reading?.()
    this.#writing?.()
  }

  /** Whether this side's end must wait until the splice has moved all bytes. */
  putsEndOff(): boolean {
    if (this.#reading === undefined) return false
    this.#isEndDue = true
    this.#reading()
    return true
  }

  /** Whether the far side's end must wait. */
  putsFarEndOff(): boolean {
    if (!this.isRead) return false
    this.#isFarEndDue = true
    return true
  }

  /** Whether the handler learns of the close only later. */
  putsCloseOff(): boolean {
    if (!this.isLent) return false
    this.stop()
    this.#isCloseDue = true
    return true
  }

  #goOn(wasRead: boolean, fault: LoanFault | undefined): void {
    const lender = this.#lender
    if (fault instanceof Error) lender.failed(fault)
    else if (wasRead) this.#end()
    if (fault === 'lost') lender.lose()
    if (fault === 'broken') lender.broke()
    if (this.#isCloseDue && !this.isLent) lender.reportClosed()
    else if (wasRead && !this.#isCloseDue) lender.readOn()
  }

  #end(): void {
    try {
      if (this.#isEndDue) this.#lender.end()
      if (this.#isFarEndDue && !this.#isCloseDue) this.#lender.farSideEnded()
    } catch (error) {
      // Bun has no handler below that would catch the error.
      this.#lender.failed(error instanceof Error ? error : new Error(String(error)))
    }
  }
}
