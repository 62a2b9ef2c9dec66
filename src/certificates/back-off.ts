// The pause of a name after a failed order.

/**
 * The first pause in milliseconds. It allows five attempts in the first hour, Let's Encrypt's limit for failed checks
 * of one name, and then a few per day.
 */
const FIRST_MS = 60_000
const FACTOR = 3
const LONGEST_MS = 12 * 3_600_000
/** The longest pause in milliseconds that an authority may ask for. */
const LONGEST_ASKED_MS = 7 * 86_400_000
/** The random share of a pause, so that names that failed together do not retry together. */
const SPREAD_SHARE = 0.1

/** Returns the pause. `failures`: the number in a row, with this one. `askedMs`: the pause that the authority asked for. */
export function backOffMs(failures: number, askedMs: number | undefined, random: () => number): number {
  const own = Math.min(FIRST_MS * FACTOR ** (failures - 1), LONGEST_MS)
  const asked = Math.min(askedMs ?? 0, LONGEST_ASKED_MS)
  return Math.round(Math.max(own, asked) * (1 + SPREAD_SHARE * random()))
}
