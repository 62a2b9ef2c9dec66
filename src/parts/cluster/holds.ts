// The names that this server holds in the directory: claimed for clients, renewed, released, and lost to other servers.

import { createHash, randomBytes } from 'node:crypto'
import {
  type Directory,
  type DirectoryTimes,
  type Hold,
  isPortName,
  type LostClaim,
  type NameWish,
} from '../../directory.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Claimed } from '../../server/contracts/servers.ts'

/** The operations of the server that claims need. */
export interface HoldsHost {
  readonly node: string
  readonly directory: Directory
  readonly times: DirectoryTimes
  readonly whenUnreachable: 'refuse' | 'grant'
  lost(name: string): void
  failed(error: Error): void
  /** Resolves after this long. */
  wait(ms: number): Promise<void>
}

/**
 * The maximum number of attempts. A directory that is too new says how long to wait; after these attempts its state has changed.
 */
const MAX_TRIES = 5
/** The maximum number of names that are released while the directory is away. Further names stay reserved for `holdMs`. */
const MAX_UNRELEASED = 10_000
/** The maximum number of lost claims of one name. They have one of two proofs: if any was granted, it was the first. */
const MAX_LOST_OF_NAME = 4
/** An epoch that no grant has, and no hold that was made without the directory. */
const NO_EPOCH = -1

/** A name that must be released: with its epoch, or the claim that may have been granted. */
interface Unreleased {
  readonly epoch?: number
  readonly lost?: LostClaim
}

export class Holds {
  readonly #host: HoldsHost
  readonly #held = new Map<string, Hold>()
  /** The number of claims in progress by name. The directory may have granted them, and other servers may read that first. */
  readonly #claiming = new Map<string, number>()
  /** The names that the directory may have for this server, that it does not hold, and that could not be released yet. */
  readonly #unreleased = new Map<string, readonly Unreleased[]>()
  #isLeaving = false
  #highestEpoch = 0

  constructor(host: HoldsHost) {
    this.#host = host
  }

  /** Claims all of the names, or none: then a code says why. `resume`: the secret that the client shows. */
  async claim(
    names: readonly string[],
    resume: string | undefined,
    isShared: boolean,
    isTls = false,
  ): Promise<Claimed | ErrorCode> {
    for (const name of names) this.#claiming.set(name, (this.#claiming.get(name) ?? 0) + 1)
    try {
      return await this.#claimAll(names, resume, isShared, isTls)
    } finally {
      for (const name of names) this.#claimed(name)
    }
  }

  #claimed(name: string): void {
    const left = (this.#claiming.get(name) ?? 1) - 1
    if (left > 0) this.#claiming.set(name, left)
    else this.#claiming.delete(name)
  }

  async #claimAll(
    names: readonly string[],
    resume: string | undefined,
    isShared: boolean,
    isTls: boolean,
  ): Promise<Claimed | ErrorCode> {
    const fresh = randomBytes(24).toString('base64url')
    const claimed: string[] = []
    let secret = fresh
    for (const name of names) {
      const before = this.#held.get(name)
      const isProved = await this.#claimOne({ name, isShared, ...(isTls && { isTls }) }, resume, secret)
      if (typeof isProved === 'string') {
        for (const one of claimed) this.release(one)
        return isProved
      }
      if (before === undefined) claimed.push(name)
      // The secret of a name that is taken over stays, because the client may never read another one.
      if (isProved && resume !== undefined) secret = resume
    }
    return { names, secret }
  }

  async #claimOne(
    wanted: Pick<NameWish, 'name' | 'isShared' | 'isTls'>,
    resume: string | undefined,
    secret: string,
  ): Promise<boolean | ErrorCode> {
    const { name, isShared } = wanted
    const { node, directory, times } = this.#host
    const wish = { ...wanted, shown: resume === undefined ? '' : proofOf(resume), next: proofOf(secret) }
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      let isAsked = false
      const outcome = await this.#releaseLate(name)
        .then(() => {
          isAsked = true
          return directory.claim(node, wish, times)
        })
        .catch((cause: unknown) => cause as Error)
      if (outcome instanceof Error) {
        // The directory may have granted the name anyway, and would keep it for this server.
        if (isAsked)
          for (const proof of new Set(isShared ? [''] : [wish.shown || wish.next, wish.next]))
            this.#later(name, { lost: { proof, isShared } })
        return this.#unreached(wish, outcome)
      }
      if (outcome.kind === 'taken') return takenCodeOf(name)
      if (outcome.kind === 'early') {
        await this.#host.wait(outcome.waitMs)
        if (this.#isLeaving) return 'SERVER_DRAINING'
        continue
      }
      const { epoch, isProved } = outcome
      this.saw(epoch)
      const proof = isProved ? wish.shown : isShared ? '' : wish.next
      this.#unreleased.delete(name)
      this.#held.set(name, { ...wanted, epoch, proof })
      return isProved
    }
    return 'CLUSTER_UNREACHABLE'
  }

  /**
   * Grants a name while the directory is away, with an epoch below all others: if another server has the name when
   * the directory is back, that server keeps it. Names of this server stay.
   */
  #unreached({ shown, next, ...wanted }: NameWish, error: Error): boolean | ErrorCode {
    const { name, isShared } = wanted
    this.#host.failed(error)
    if (this.#host.whenUnreachable === 'refuse') return 'CLUSTER_UNREACHABLE'
    const hold = this.#held.get(name)
    if (hold === undefined) this.#held.set(name, { ...wanted, epoch: 0, proof: isShared ? '' : next })
    else if (hold.isShared !== isShared) return takenCodeOf(name)
    if (hold === undefined || isShared) return false
    return shown !== '' && hold.proof === shown ? true : takenCodeOf(name)
  }

  /** The highest epoch of all names that this server knows, from which a directory that lost its data must continue. */
  get highestEpoch(): number {
    return this.#highestEpoch
  }

  /** Notes an epoch that a server was granted. */
  saw(epoch: number): void {
    this.#highestEpoch = Math.max(this.#highestEpoch, epoch)
  }

  has(name: string): boolean {
    return this.#held.has(name)
  }

  mayHave(name: string): boolean {
    return this.#held.has(name) || this.#claiming.has(name)
  }

  /** Called when no tunnel here has the name any more. */
  release(name: string): void {
    const hold = this.#held.get(name)
    // The names of a server that stops stay reserved for its clients, which go to other servers.
    if (hold === undefined || this.#isLeaving) return
    this.#held.delete(name)
    const { directory, node } = this.#host
    const failed = (error: Error): void => this.#host.failed(error)
    this.#releaseLate(name).catch(failed)
    directory.release(node, name, hold.epoch).catch((error: Error) => {
      this.#later(name, { epoch: hold.epoch })
      failed(error)
    })
  }

  #later(name: string, unreleased: Unreleased): void {
    const before = this.#unreleased.get(name) ?? []
    if (before.length === 0 && this.#unreleased.size >= MAX_UNRELEASED) return
    const lost = before.filter(one => one.lost !== undefined)
    const held = before.find(one => one.epoch !== undefined)
    if (unreleased.lost === undefined) {
      // A later hold that the directory does not know has a lower epoch.
      const isHigher = (unreleased.epoch ?? NO_EPOCH) > (held?.epoch ?? NO_EPOCH)
      this.#unreleased.set(name, [isHigher || held === undefined ? unreleased : held, ...lost])
    } else if (lost.length < MAX_LOST_OF_NAME) this.#unreleased.set(name, [...before, unreleased])
  }

  /** Whether the directory may have names for this server that it does not hold. */
  get isBehind(): boolean {
    for (const name of this.#unreleased.keys()) if (!this.#held.has(name)) return true
    return false
  }

  /** Called when the directory reports the holder of a name. */
  changed(name: string, node: string, epoch: number): void {
    this.saw(epoch)
    const hold = this.#held.get(name)
    if (hold === undefined || node === this.#host.node || node === '' || hold.isShared) return
    if (epoch < hold.epoch) return
    this.#lose(name)
  }

  /** Writes all names to the directory, which has lost them or soon would. */
  async restore(): Promise<void> {
    const { directory, node, times } = this.#host
    for (const name of [...this.#unreleased.keys()]) await this.#releaseLate(name)
    const held = [...this.#held.values()]
    if (held.length === 0) return
    const lost = new Set(await directory.restore(node, held, times))
    for (const { name, epoch } of held) {
      const now = this.#held.get(name)
      // The name was claimed again since: only the earlier hold is lost.
      if (lost.has(name) && now?.epoch === epoch) this.#lose(name)
      // The name was released since, and the directory may get the two messages in reverse order.
      if (!lost.has(name) && now === undefined && !this.#isLeaving) await directory.release(node, name, epoch)
    }
  }

  /** Releases what could not be released before, unless the name is held here by now. Rejects while the directory is away. */
  async #releaseLate(name: string): Promise<void> {
    const { directory, node } = this.#host
    for (const one of this.#unreleased.get(name) ?? []) {
      if (this.#held.has(name)) return
      await directory.release(node, name, one.epoch ?? NO_EPOCH, one.lost)
      const left = this.#unreleased.get(name)?.filter(other => other !== one) ?? []
      if (left.length > 0) this.#unreleased.set(name, left)
      else this.#unreleased.delete(name)
    }
  }

  leave(): void {
    this.#isLeaving = true
  }

  #lose(name: string): void {
    // A server that stops has sent its clients to others, and finishes what is in progress.
    if (this.#held.delete(name) && !this.#isLeaving) this.#host.lost(name)
  }
}

function takenCodeOf(name: string): ErrorCode {
  if (isPortName(name)) return 'PORT_TAKEN'
  return name.includes('.') ? 'HOST_TAKEN' : 'NAME_TAKEN'
}

export function proofOf(secret: string): string {
  return createHash('sha256').update(`name ${secret}`).digest('base64url')
}
