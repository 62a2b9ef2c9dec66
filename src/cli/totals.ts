// Counts what went through, for the last line.

import type { TotalsEvent } from './output.ts'

export class Totals {
  readonly #startedAt: number = performance.now()
  #requests = 0
  #errors = 0
  #bytes = 0
  readonly #underWay = new Set<number>()
  #idle: (() => void) | undefined

  began(id: number): void {
    this.#underWay.add(id)
  }

  ended(response: {
    readonly id: number
    readonly status: number
    readonly bytes: number
    readonly error?: string
  }): void {
    this.#requests++
    if (response.status >= 500 || response.error !== undefined) this.#errors++
    this.#bytes += response.bytes
    this.#underWay.delete(response.id)
    if (this.#underWay.size === 0) this.#idle?.()
  }

  /** The connection was lost, and with it every answer under way. */
  cut(): void {
    this.#underWay.clear()
    this.#idle?.()
  }

  get underWay(): number {
    return this.#underWay.size
  }

  /** Resolves when nothing is under way. */
  whenIdle(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle = resolve
    if (this.#underWay.size === 0) resolve()
    return promise
  }

  event(): TotalsEvent {
    const durationMs = Math.round(performance.now() - this.#startedAt)
    return { type: 'totals', requests: this.#requests, errors: this.#errors, bytes: this.#bytes, durationMs }
  }
}
