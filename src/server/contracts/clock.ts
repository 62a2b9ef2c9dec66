// Contract: deadlines of seconds, for all that may run out of time. Implementation: deadlines.ts.

/** A wait that may run out of time. */
export interface Deadline {
  /** The tick at which `expired` is called; 0 for never. Only the clock sets it. */
  dueTick: number
  expired(): void
}

export interface Clock {
  /** Counts up while the clock runs. */
  readonly tick: number
  watch(deadline: Deadline): void
  forget(deadline: Deadline): void
  /** Calls `deadline` after `ms`; 0 means never. Replaces what was armed before. */
  arm(deadline: Deadline, ms: number): void
  disarm(deadline: Deadline): void
}
