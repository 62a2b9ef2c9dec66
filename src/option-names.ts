// Refuses unknown options and numbers out of range, and finds the known word that a mistyped one was meant to be.

import { optionInvalid } from './errors.ts'

export type Names<Options> = Readonly<Record<keyof Options, true>>

type Words<Text> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text & string

/**
 * Returns the names in the texts, which spaces separate. The compiler refuses texts that lack an option of the
 * interface, or contain another word.
 */
export function namesOf<Options>(): <const Texts extends readonly string[]>(
  ...texts: Texts
) => [Exclude<Words<Texts[number]>, keyof Options>] extends [never]
  ? Readonly<Record<Words<Texts[number]>, true>>
  : { readonly noOptions: Exclude<Words<Texts[number]>, keyof Options> } {
  // The compiler cannot see that the keys of the object are the words of the texts.
  return (...texts) =>
    Object.fromEntries(texts.flatMap(text => text.split(' ')).map(name => [name, true])) as never
}

/**
 * Throws `OPTION_INVALID` with all unknown options, because a misspelled one would otherwise be ignored. `hints`:
 * names that other packages use.
 */
export function checkNames(
  given: object,
  known: object,
  where: string,
  hints: Readonly<Record<string, string>> = {},
): void {
  const others = Object.keys(given).filter(
    name => given[name as keyof typeof given] !== undefined && !Object.hasOwn(known, name),
  )
  if (others.length === 0) return
  const hintOf = (name: string): string | undefined => {
    if (Object.hasOwn(hints, name)) return hints[name]
    const near = nearest(name, Object.keys(known))
    return near && `Did you mean ${near}?`
  }
  const names = others.map(name => JSON.stringify(name.slice(0, 64))).join(', ')
  const what = `${where} has no option ${names}.`
  throw optionInvalid([what, ...others.flatMap(name => hintOf(name) ?? [])].join(' '))
}

/** Returns the number. Throws `OPTION_INVALID` if it is out of range or has a fraction. */
export function whole(
  name: string,
  value: number,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`
  throw optionInvalid(`${name} must be a whole number ${range}, not ${value}.`)
}

/**
 * Returns the known word that differs by one edit, or two from eight letters on. `undefined` if there is none. A word
 * of two letters would be near to anything.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = (word.length < 3 ? 0 : word.length < 8 ? 1 : 2) + 1
  for (const one of known) {
    if (Math.abs(one.length - word.length) >= least) continue
    const slips = distance(word.toLowerCase(), one.toLowerCase())
    if (slips < least) {
      least = slips
      best = one
    }
  }
  return best
}

/**
 * Returns the number of letters added, left out, replaced or swapped with their neighbour: Damerau's distance without
 * a second edit of a swap.
 */
export function distance(first: string, second: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: second.length + 1 }, (_, index) => index)
  for (let row = 1; row <= first.length; row++) {
    const current = [row]
    for (let column = 1; column <= second.length; column++) {
      const isSame = first[row - 1] === second[column - 1]
      const isSwap =
        row > 1 &&
        column > 1 &&
        first[row - 1] === second[column - 2] &&
        first[row - 2] === second[column - 1]
      current.push(
        Math.min(
          last[column]! + 1,
          current[column - 1]! + 1,
          last[column - 1]! + (isSame ? 0 : 1),
          isSwap ? beforeLast[column - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    beforeLast = last
    last = current
  }
  return last[second.length]!
}
