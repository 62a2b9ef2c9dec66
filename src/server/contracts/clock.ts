// Contract: timeouts with a resolution of about a second, for everything on the server that has a time limit.
// Implementation: deadlines.ts.

/** Anything with a time limit. */
export interface Deadline {
  /** The tick at which `expired` is called; 0 for never. Only the clock sets it. */
  dueTick: number
  expired(): void
}

export interface Clock {
  /** The number of ticks so far. */
  readonly tick: number
  watch(deadline: Deadline): void
  forget(deadline: Deadline): void
  /** Calls `deadline.expired` after `ms`; 0 means never. Replaces an earlier call. */
  arm(deadline: Deadline, ms: number): void
  disarm(deadline: Deadline): void
}
