// The secret with which the servers of a cluster prove themselves: set by the operator, or stored in the directory,
// which may lose it.

import type { Directory } from '../../directory.ts'
import { isSameProof, peerProof } from './peer-wire.ts'

export class PeerSecret {
  readonly #isGiven: boolean
  /**
   * The time in milliseconds after which every server has sent a heartbeat since the directory lost its data, and
   * knows the new secret.
   */
  readonly #settleMs: number
  #current: string
  /** The secret before the directory lost it. Servers without the new one know only this one. */
  #before: string | undefined
  #changedAt = 0

  /** Makes the secret. `given`: the operator's; `''` for none. */
  constructor(given: string, settleMs: number) {
    this.#isGiven = given !== ''
    this.#current = given
    this.#settleMs = settleMs
  }

  /**
   * Takes the directory's secret, or gives it this server's. Called at the start with a new secret, and after the directory has
   * lost its data, when a server that starts may have been first. Rejects if the directory cannot be reached.
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

  /** Returns the proof for `node` that this server is in the cluster. `number` is as for `peerProof`. */
  proofFor(node: string, number: string): string {
    const isSettled = this.#before === undefined || performance.now() - this.#changedAt > this.#settleMs
    return peerProof(isSettled ? this.#current : (this.#before ?? ''), node, number)
  }

  /** Whether a server of the cluster made the proof. `node`: this server. `number` is as for `peerProof`. */
  isProof(shown: string, node: string, number: string): boolean {
    const known = this.#before === undefined ? [this.#current] : [this.#current, this.#before]
    return known.some(secret => isSameProof(shown, peerProof(secret, node, number)))
  }
}
