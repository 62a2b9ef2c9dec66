// The only file of this folder that other code may import: lends connections to the threads until they return them.

import type { Accelerator, Lane, LaneHandler, LaneTerms, Trunk } from '../accelerator.ts'
import type { Loan, LoanFault, Socket, Splice } from '../socket.ts'
import { watchFaults } from './faults.ts'
import type { OpenTrunk } from './main-lanes.ts'
import { beginLane, canSplice, lanesReady, openTrunk, spliceDescriptors } from './threads.ts'

/** The accelerator. `undefined` in a build without this folder. */
export const accelerator: Accelerator | undefined = {
  get isPossible() {
    return canSplice()
  },

  splice(from, to, limitBytes, pace, ended) {
    let splice: Splice | undefined
    const stop = () => splice?.stop()
    const reading = from.lend?.('reading', stop)
    const writing = reading && to.lend?.('writing', stop)
    if (reading === undefined || writing === undefined) {
      reading?.giveBack()
      return undefined
    }
    const [source, target] = [reading.descriptor, writing.descriptor]
    splice = spliceDescriptors(
      source,
      target,
      limitBytes,
      pace,
      ({ movedBytes, leftover, failed, isLost }) => {
        writing.giveBack()
        const thrown = giveBack(reading, () => ended(movedBytes, leftover))
        reading.goOn(thrown ?? (isLost ? 'lost' : failed === 'from' ? 'broken' : undefined))
        writing.goOn(failed === 'to' ? 'broken' : undefined)
      },
    )
    if (splice !== undefined) return splice
    reading.giveBack()
    writing.giveBack()
    return undefined
  },

  ready: lanesReady,

  openTrunk(socket, isAppSide) {
    let trunk: OpenTrunk | undefined
    const loan = socket.lend?.('both', () => trunk?.stop())
    if (loan === undefined) return undefined
    trunk = openTrunk(loan.descriptor, isAppSide, isLost => {
      loan.giveBack()
      // No other code can use the connection of a trunk.
      loan.goOn(isLost ? 'lost' : 'broken')
    })
    if (trunk === undefined) {
      loan.giveBack()
      return undefined
    }
    socket.pause()
    return new LentTrunk(trunk)
  },

  watchFaults,
}

class LentTrunk implements Trunk {
  readonly #trunk: OpenTrunk

  constructor(trunk: OpenTrunk) {
    this.#trunk = trunk
  }

  nextLane(): number {
    return this.#trunk.nextLane()
  }

  refuse(lane: number, handler: LaneHandler): void {
    this.#trunk.refuse(lane, handler)
  }

  enter(socket: Socket, lane: number, terms: LaneTerms | undefined, handler: LaneHandler): Lane | undefined {
    let running: Lane | undefined
    const loan = socket.lend?.('both', () => running?.stop())
    if (loan === undefined) return undefined
    running = beginLane(this.#trunk, lane, loan.descriptor, terms, {
      exchanged: exchange => handler.exchanged?.(exchange),
      logged: (lines, count) => handler.logged?.(lines, count),
      over: outcome => {
        const thrown = giveBack(loan, () => handler.over(outcome))
        loan.goOn(thrown ?? (outcome.isLost ? 'lost' : outcome.hasFailed ? 'broken' : undefined))
      },
      more: bytes => handler.more(bytes),
      back: isTorn => handler.back(isTorn),
    })
    if (running === undefined) loan.giveBack()
    return running
  }
}

/** Returns a connection before `report` runs. Returns the error that `report` threw, which ends only this connection. */
function giveBack(loan: Loan, report: () => void): LoanFault | undefined {
  loan.giveBack()
  try {
    report()
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
