// The secret with which the servers of a cluster prove themselves: given by the operator, or kept in the directory, which may
// lose it.

import type { Directory } from '../../directory.ts'
import { isSameProof, peerProof } from './peer-wire.ts'

export class PeerSecret {
  readonly #isGiven: boolean
  /** The time after which every server has sent a heartbeat since the directory lost its data, and knows the new secret. */
  readonly #settleMs: number
  #current: string
  /** The secret before the directory lost it: servers that have not received the new one know only this one. */
  #before: string | undefined
  #changedAt = 0

  /** Makes the secret. `given`: the operator's; `''`: none. */
  constructor(given: string, settleMs: number) {
    this.#isGiven = given !== ''
    this.#current = given
    this.#settleMs = settleMs
  }

  /**
   * Takes the one of the directory, or gives it this server's. Called at the start, with a fresh one, and when the directory has lost its
   * data: a server that starts just then may have been the first. Rejects when it cannot be reached.
   */
  async agree(directory: Directory, fresh: () => string): Promise<void> {
    if (this.#isGiven) return
    const known = this.#current
    const valid = await directory.secret(known === '' ? fresh() : known)
    if (valid === known) return
    this.#current = valid
    if (known === '') return
    this.#before = known
    this.#changedAt = performance.now()
  }

  /** Shows `node` that this server is one of the cluster. `number`: as that of `peerProof`. */
  proofFor(node: string, number: string): string {
    const isSettled = this.#before === undefined || performance.now() - this.#changedAt > this.#settleMs
    return peerProof(isSettled ? this.#current : (this.#before ?? ''), node, number)
  }

  /** Whether a server of the cluster has made the proof. `node`: this one. `number`: as that of `peerProof`. */
  isProof(shown: string, node: string, number: string): boolean {
    const known = this.#before === undefined ? [this.#current] : [this.#current, this.#before]
    return known.some(secret => isSameProof(shown, peerProof(secret, node, number)))
  }
}
