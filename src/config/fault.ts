// A fault of a configuration file, with its place.

/** A place in a text. Both are counted from 1, the column in UTF-16 units, as editors count. */
export interface Place {
  readonly line: number
  readonly column: number
}

export interface Fault {
  /** The place. `undefined` for the file as a whole, or a TypeScript value outside of a literal. */
  readonly at: Place | undefined
  /** The fault and the next step, without a full stop. */
  readonly message: string
}

/** Returns `localtunnels.toml:12:3 unknown key …`, as compilers print it and editors follow it. */
export function faultLine(file: string, { at, message }: Fault): string {
  return at === undefined ? `${file} ${message}` : `${file}:${at.line}:${at.column} ${message}`
}

/** Sorts faults in the order of the file. Faults without a place come first: they concern the whole file. */
export function sortFaults(faults: readonly Fault[]): readonly Fault[] {
  const at = (fault: Fault) => fault.at ?? { line: 0, column: 0 }
  return faults.toSorted((first, second) => {
    const lines = at(first).line - at(second).line
    return lines === 0 ? at(first).column - at(second).column : lines
  })
}

/** Finds lines and columns for offsets in a text. */
export class Lines {
  readonly #begins: readonly number[]

  constructor(text: string) {
    const begins = [0]
    for (const { index } of text.matchAll(/\n/g)) begins.push(index + 1)
    this.#begins = begins
  }

  at(offset: number): Place {
    let low = 0
    let high = this.#begins.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#begins[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - this.#begins[low]! + 1 }
  }
}
