// Contract: rates that several servers keep together. Implementation: directories/redis-rates.ts.

/** The part of a key's rate that a server may use until it asks again. */
export interface RateShare {
  /** The number of requests that may pass. 0 if none is left. */
  readonly granted: number
  /** Milliseconds until there is one, when none is left. */
  readonly waitMs: number
}

export interface SharedRates {
  /** Takes up to `wanted` of what all servers together have left of a key. Rejects when that cannot be asked. */
  take(
    key: string,
    rate: { readonly limit: number; readonly windowMs: number },
    wanted: number,
  ): Promise<RateShare>
}
