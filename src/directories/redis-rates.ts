// Rates that several servers share, in Redis or Valkey: each takes a share and asks again when that is used up.

import type { RateShare, SharedRates } from '../shared-rates.ts'
import { type Connection, openRedis, type RedisDirectoryOptions } from './redis.ts'

/**
 * The generic cell rate algorithm on the clock of Redis: the key stores when its allowance is full again. It takes up
 * to `wanted` of the rest of a bucket of `limit`.
 */
const TAKE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local limit, window, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local interval = window / limit
local whole = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local left = math.floor((window - (whole - now)) / interval + 0.000001)
local granted = math.min(left, wanted)
if granted <= 0 then return { 0, math.ceil(whole + interval - window - now) } end
whole = whole + granted * interval
redis.call('SET', KEYS[1], string.format('%.3f', whole), 'PX', math.ceil(whole - now) + 1)
return { granted, 0 }`

interface Script {
  ltTake(key: string, limit: number, windowMs: number, wanted: number): Promise<readonly [number, number]>
}

export class RedisRates implements SharedRates {
  readonly #connection: Connection & Script
  readonly #prefix: string

  /** Opens the rates. Connects at once, and reconnects until it is closed. Throws `OPTION_INVALID` for an invalid URL. */
  static async open(options: RedisDirectoryOptions): Promise<RedisRates> {
    return new RedisRates(await openRedis(options), options)
  }

  private constructor(connection: Connection, { prefix = 'localtunnels', failed }: RedisDirectoryOptions) {
    connection.defineCommand('ltTake', { numberOfKeys: 1, lua: TAKE })
    // defineCommand has just added it.
    this.#connection = connection as Connection & Script
    this.#prefix = `${prefix}:rate:`
    connection.on('error', (error: Error) => failed?.(error))
  }

  async take(
    key: string,
    { limit, windowMs }: { readonly limit: number; readonly windowMs: number },
    wanted: number,
  ): Promise<RateShare> {
    const of = `${this.#prefix}${limit}/${windowMs}:${key}`
    const [granted, waitMs] = await this.#connection.ltTake(of, limit, windowMs, wanted)
    return { granted, waitMs }
  }

  close(): void {
    this.#connection.disconnect()
  }
}
