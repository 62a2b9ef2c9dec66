// The time that a name waits after a failed order.

/**
 * The first pause: five attempts within the first hour, the limit of Let's Encrypt for failed checks of one name; then a few a
 * day.
 */
const FIRST_MS = 60_000
const FACTOR = 3
const LONGEST_MS = 12 * 3_600_000
/** An authority may ask for more, up to this. */
const LONGEST_ASKED_MS = 7 * 86_400_000
/** The random share of a pause, so that names that failed together do not return together. */
const SPREAD_SHARE = 0.1

/**
 * Returns the pause. `failures`: in a row, this one included. `askedMs`: the wish of the authority. `askedMs`: what the
 * authority wants.
 */
export function backOffMs(failures: number, askedMs: number | undefined, random: () => number): number {
  const own = Math.min(FIRST_MS * FACTOR ** (failures - 1), LONGEST_MS)
  const asked = Math.min(askedMs ?? 0, LONGEST_ASKED_MS)
  return Math.round(Math.max(own, asked) * (1 + SPREAD_SHARE * random()))
}
