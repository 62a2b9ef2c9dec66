// The keys of `[limits]`, made from the limits of an end: both have them by the same names.

import { type Field, type Fields, kebabOf, type Value } from '../field.ts'
import { formatDuration, formatSize } from '../quantity.ts'

/** `head-timeout = "15s"` is `headTimeoutMs`: texts bring their unit, so that the key needs none. */
export function limitFields(
  defaults: object,
  neverZero: ReadonlySet<string>,
  meanings: Readonly<Record<string, string>>,
): Fields {
  return Object.fromEntries(
    Object.entries(defaults).map(([option, amount]: readonly [string, number]) => [
      kebabOf(option.replace(/(?:Ms|Bytes)$/, '')),
      limitField(option, amount, neverZero.has(option) ? 1 : 0, meanings[option] ?? ''),
    ]),
  )
}

function limitField(option: string, amount: number, least: number, meaning: string): Field {
  const [value, shown]: readonly [Value, string] = option.endsWith('Ms')
    ? [{ type: 'duration', least }, formatDuration(amount)]
    : option.endsWith('Bytes')
      ? [{ type: 'size', least }, formatSize(amount)]
      : [{ type: 'number', least, most: Number.MAX_SAFE_INTEGER }, String(amount)]
  return { value, option, meaning, default: amount === 0 ? '0' : `\`${shown}\`` }
}
