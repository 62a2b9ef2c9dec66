// Bandwidth: bytes above the rate wait for their turn, and so do their senders. Nothing is cut.
//
// A bucket is one direction of a tunnel, of a token, or of one address at a tunnel. Bytes wait for the bucket that
// has least; one timer serves all buckets for which something waits.

import { errorOf } from '../../errors.ts'
import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import { pluginsFor } from '../../server/settings/plugins-for.ts'
import type { TunnelRule } from '../../server/settings/tunnel-rule.ts'
import { networkOf } from '../../wire/ip-address.ts'

/** The time in milliseconds between turns of waiting bytes. */
const TICK_MS = 20
/** The time in seconds whose bytes a bucket lets pass at once after a pause, and at least a usual response. */
const BURST_SECONDS = 0.1
const LEAST_BURST_BYTES = 16_384
/** The number of bytes in one turn of a connection while others wait. */
const QUANTUM_BYTES = 16_384
/** The minimum number of bytes for a turn: a packet. */
const LEAST_TURN_BYTES = 1_460
/** The number of addresses remembered at once. If exceeded, the one that was quiet longest is forgotten, and begins again. */
export const MAX_SHAPED_ADDRESSES = 10_000

/** A sender whose bytes wait for the rate. */
export interface ShapedTurn {
  /** Called when the rate allows more bytes. It may have to wait again. */
  turn(): void
}

export class Bucket {
  readonly waiting: Set<ShapedTurn> = new Set()
  readonly #bytesPerMs: number
  readonly #burstBytes: number
  #bytes: number
  #at: number

  constructor(bytesPerSecond: number, nowMs: number = performance.now()) {
    this.#bytesPerMs = bytesPerSecond / 1_000
    this.#burstBytes = Math.max(LEAST_BURST_BYTES, bytesPerSecond * BURST_SECONDS)
    this.#bytes = this.#burstBytes
    this.#at = nowMs
  }

  /** The number of bytes that may pass now; negative if too many have passed. */
  available(nowMs: number): number {
    this.#bytes = Math.min(this.#burstBytes, this.#bytes + (nowMs - this.#at) * this.#bytesPerMs)
    this.#at = nowMs
    return this.#bytes
  }

  /** Counts sent bytes. Bytes that were read cannot be delayed any more, so at most a second's worth of them is owed. */
  spend(bytes: number): void {
    this.#bytes = Math.max(this.#bytes - bytes, -1_000 * this.#bytesPerMs)
  }
}

/** The buckets that must all have room. */
export class Shape {
  readonly #buckets: readonly Bucket[]
  readonly #timer: ShapingTimer
  #waitsAt: Bucket | undefined

  constructor(buckets: readonly Bucket[], timer: ShapingTimer) {
    this.#buckets = buckets
    this.#timer = timer
  }

  /** Returns how many of `bytes` may pass now, and counts them. `isTurn`: others that wait come after this one. */
  take(bytes: number, isTurn: boolean): number {
    const now = performance.now()
    let most = isTurn ? Math.min(bytes, QUANTUM_BYTES) : bytes
    for (const bucket of this.#buckets) {
      if (!isTurn && bucket.waiting.size > 0) return 0
      most = Math.min(most, Math.floor(bucket.available(now)))
    }
    if (most <= 0) return 0
    this.spend(most)
    return most
  }

  spend(bytes: number): void {
    for (const bucket of this.#buckets) bucket.spend(bytes)
  }

  /** Whether more bytes passed than the rate allows. */
  get isOver(): boolean {
    const now = performance.now()
    return this.#buckets.some(bucket => bucket.available(now) < 0)
  }

  /** Calls `turn` once, when the rate allows more bytes. */
  await(waiting: ShapedTurn): void {
    const now = performance.now()
    let least = this.#buckets[0]
    for (const bucket of this.#buckets)
      if (least !== undefined && bucket.available(now) < least.available(now)) least = bucket
    if (least === undefined) return
    this.forget(waiting)
    this.#waitsAt = least
    least.waiting.add(waiting)
    this.#timer.add(least)
  }

  forget(waiting: ShapedTurn): void {
    this.#waitsAt?.waiting.delete(waiting)
  }
}

/** Serves the buckets with waiting bytes. Stands still while there are none. */
export class ShapingTimer {
  readonly #busy = new Set<Bucket>()
  readonly #failed: (error: Error) => void
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Makes the timer. `failed` is called with errors of a turn: in the event loop they would end the process. */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed
  }

  add(bucket: Bucket): void {
    this.#busy.add(bucket)
    this.#arm()
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => this.#tick(), TICK_MS)
    // Only listeners keep the process alive.
    this.#timer.unref()
  }

  #tick(): void {
    this.#timer = undefined
    for (const bucket of [...this.#busy]) this.#serve(bucket)
    if (this.#busy.size > 0) this.#arm()
  }

  #serve(bucket: Bucket): void {
    const now = performance.now()
    // A sender that had its turn and waits again comes last: each turn uses some of the bytes, or waits for another bucket.
    for (const waiting of bucket.waiting) {
      if (bucket.available(now) < LEAST_TURN_BYTES) break
      bucket.waiting.delete(waiting)
      try {
        waiting.turn()
      } catch (cause) {
        this.#failed(errorOf(cause))
      }
    }
    if (bucket.waiting.size === 0) this.#busy.delete(bucket)
  }
}

/** The limits of both directions. */
export interface Shapes {
  /** The direction to the visitor. */
  readonly down: Shape
  /** The direction from the visitor. */
  readonly up: Shape
}

interface Buckets {
  readonly down: Bucket
  readonly up: Bucket
}

const bucketsOf = (bytesPerSecond: number): Buckets => ({
  down: new Bucket(bytesPerSecond),
  up: new Bucket(bytesPerSecond),
})

/** The bandwidth rules of the server. */
export class Shaping {
  readonly #rules: readonly TunnelRule[]
  readonly #timer: ShapingTimer
  readonly #byTunnel = new WeakMap<LayeredTunnel, Buckets>()
  readonly #byHolder = new WeakMap<object, Buckets>()
  /** The buckets by tunnel and address, the last seen last. */
  readonly #byAddress = new Map<string, Buckets>()

  constructor(rules: readonly TunnelRule[], timer: ShapingTimer) {
    this.#rules = rules.some(hasBandwidth) ? rules : []
    this.#timer = timer
  }

  /** Whether visitors of this tunnel are limited, so that their bytes stay on the main thread. */
  isFor(tunnel: LayeredTunnel): boolean {
    const rule = this.#ruleOf(tunnel)
    return tunnel.holder?.rule.bandwidth !== undefined || (rule !== undefined && hasBandwidth(rule))
  }

  /** Returns the limits for one request or connection. `undefined` for none. */
  of(tunnel: LayeredTunnel, address: string): Shapes | undefined {
    const { holder } = tunnel
    const ofToken = holder?.rule.bandwidth
    const { bandwidth, addressBandwidth } = this.#ruleOf(tunnel) ?? {}
    if (ofToken === undefined && bandwidth === undefined && addressBandwidth === undefined) return undefined
    const all: Buckets[] = []
    if (holder !== undefined && ofToken !== undefined) all.push(known(this.#byHolder, holder, ofToken))
    if (bandwidth !== undefined) all.push(known(this.#byTunnel, tunnel, bandwidth))
    if (addressBandwidth !== undefined) all.push(this.#ofAddress(tunnel.name, address, addressBandwidth))
    return {
      down: new Shape(
        all.map(({ down }) => down),
        this.#timer,
      ),
      up: new Shape(
        all.map(({ up }) => up),
        this.#timer,
      ),
    }
  }

  #ruleOf({ name }: LayeredTunnel): TunnelRule | undefined {
    return this.#rules.length === 0 ? undefined : pluginsFor(this.#rules, name)[0]
  }

  #ofAddress(tunnel: string, address: string, bytesPerSecond: number): Buckets {
    const key = `${tunnel} ${networkOf(address)}`
    const buckets = this.#byAddress.get(key) ?? bucketsOf(bytesPerSecond)
    this.#byAddress.delete(key)
    this.#byAddress.set(key, buckets)
    if (this.#byAddress.size > MAX_SHAPED_ADDRESSES) {
      const [oldest = ''] = this.#byAddress.keys()
      this.#byAddress.delete(oldest)
    }
    return buckets
  }
}

function known<Key extends object>(map: WeakMap<Key, Buckets>, key: Key, bytesPerSecond: number): Buckets {
  const found = map.get(key) ?? bucketsOf(bytesPerSecond)
  map.set(key, found)
  return found
}

function hasBandwidth({ bandwidth, addressBandwidth }: TunnelRule): boolean {
  return bandwidth !== undefined || addressBandwidth !== undefined
}
