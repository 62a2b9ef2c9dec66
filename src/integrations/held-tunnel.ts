// The tunnel of a dev server that restarts within its process: it keeps its name, and registers once.

import type { OriginOptions } from '../client/options.ts'
import { TunnelError } from '../errors.ts'
import { type Reservation, type ReserveOptions, reserve } from '../reserve.ts'

/** The key of the tunnels. The configuration, and this file with it, may be loaded again at a restart. */
const HELD = Symbol.for('localtunnels.held')

export class HeldTunnel {
  readonly #options: ReserveOptions
  #reservation: Reservation | undefined
  #opening: Promise<void> | undefined
  #place: OriginOptions | undefined
  #holds = 0
  /** The name to request again after a pause. */
  #subdomain: string | undefined
  /** The reason why there is no tunnel. */
  failure: Error | undefined

  private constructor(options: ReserveOptions) {
    this.#options = options
  }

  /** Returns the tunnel of this process for these options. */
  static of(tool: string, options: ReserveOptions): HeldTunnel {
    // A global that only this file uses.
    const here = globalThis as { [HELD]?: Map<string, HeldTunnel> }
    here[HELD] ??= new Map()
    const all = here[HELD]
    const key = `${tool} ${JSON.stringify(options)}`
    const held = all.get(key) ?? new HeldTunnel(options)
    all.set(key, held)
    return held
  }

  get url(): string | undefined {
    return this.#reservation?.url
  }

  get host(): string | undefined {
    return this.#reservation?.host
  }

  /** Opens the tunnel. If the client cannot have one, resolves with `failure` set. */
  open(): Promise<void> {
    this.#opening ??= this.#reserve().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #reserve(): Promise<void> {
    if (this.#reservation !== undefined) return
    this.failure = undefined
    try {
      const wished = this.#subdomain === undefined ? {} : { subdomain: this.#subdomain }
      const reservation = await reserve({ ...this.#options, ...wished })
      this.#reservation = reservation
      this.#subdomain = reservation.client.getSubdomain()
      // A lost connection comes back; after a final end there is no tunnel.
      reservation.client.on('close', ({ error }) => {
        if (this.#reservation !== reservation) return
        this.#reservation = undefined
        this.failure = error
      })
      if (this.#place !== undefined) reservation.connect(this.#place)
    } catch (cause) {
      if (!(cause instanceof TunnelError)) throw cause
      this.failure = cause
    }
  }

  /** Sets the place of the app. */
  lead(to: OriginOptions): void {
    this.#place = to
    this.#reservation?.connect(to)
  }

  /** Keeps the tunnel until all holders have released it: a restart makes the new dev server before it closes the old one. */
  hold(): { release(): Promise<void> } {
    this.#holds++
    let released: Promise<void> | undefined
    return {
      release: () => {
        released ??= --this.#holds === 0 ? this.close() : Promise.resolve()
        return released
      },
    }
  }

  async close(): Promise<void> {
    const reservation = this.#reservation
    this.#reservation = undefined
    await reservation?.close()
  }

  /** Called when the process ends: releases what can be released before it returns. */
  drop(): void {
    void this.#reservation?.client.disconnect().catch(() => {
      // The process ends, so nothing needs the error.
    })
  }
}
