// Contract: rates that several servers share. Implementation: directories/redis-rates.ts.

/** The part of a key's rate that a server may use until it asks again. */
export interface RateShare {
  /** The number of requests that may pass. 0 if none are left. */
  readonly granted: number
  /** The milliseconds until there is one, if none are left. */
  readonly waitMs: number
}

export interface SharedRates {
  /**
   * Takes up to `wanted` requests of those that all servers together have left for a key. Rejects if the shared store
   * cannot be reached.
   */
  take(
    key: string,
    rate: { readonly limit: number; readonly windowMs: number },
    wanted: number,
  ): Promise<RateShare>
}
