// The plain GETs that guards admit without being asked about each: lanes take from these numbers.

import type { Allotment } from '../../plugin.ts'
import type { LaneAsking, LaneClause } from '../../server/contracts/laning.ts'
import type { PartServer } from '../../server/contracts/part.ts'
import type { Guards } from './guards.ts'

export class Allotments {
  readonly #server: PartServer
  readonly #guards: Guards
  /** The allotments in use, with the number of lanes that take from each. */
  readonly #taken = new Map<Allotment, number>()

  constructor(server: PartServer, guards: Guards) {
    this.#server = server
    this.#guards = guards
  }

  /** Guards are asked about each request, unless they have said how many may pass. */
  clauseFor({ tunnel, address, head, isProxy }: LaneAsking): LaneClause | 'none' | undefined {
    if (!tunnel.isGuarded) return undefined
    if (isProxy) return 'none'
    const { kind, name, owner, guard, tokenRate } = tunnel
    const { isSecure } = this.#server
    const admittance = { kind, tunnel: name, owner, address, isSecure, head }
    const allotments = this.#guards.allot(guard, admittance, tokenRate)
    if (allotments === undefined) return 'none'
    return {
      // These guards have allotted plain GETs only.
      terms: { isForGets: true, allotted: allotments.map(({ left }) => left) },
      began: () => {
        for (const allotment of allotments) this.#begin(allotment)
      },
      ended: () => {
        for (const allotment of allotments) this.#end(allotment)
      },
    }
  }

  renew(): void {
    for (const allotment of this.#taken.keys()) this.#guarded(() => allotment.renew())
  }

  #begin(allotment: Allotment): void {
    this.#guarded(() => allotment.began())
    this.#taken.set(allotment, (this.#taken.get(allotment) ?? 0) + 1)
  }

  #end(allotment: Allotment): void {
    this.#guarded(() => allotment.ended())
    const count = (this.#taken.get(allotment) ?? 1) - 1
    if (count === 0) this.#taken.delete(allotment)
    else this.#taken.set(allotment, count)
  }

  /** Runs a guard's code, which is foreign: an error in it ends no lane. */
  #guarded(task: () => void): void {
    try {
      task()
    } catch (cause) {
      this.#guards.fail(cause)
    }
  }
}
