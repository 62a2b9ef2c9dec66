// The flags of a program that is no suite.

import { readFileSync } from 'node:fs'
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Flags = NonNullable<ParseArgsConfig['options']>

/**
 * Reads the flags of the program in `file`. What cannot be used is said in one line, and ends the program with 2. `numbers`: flags whose values are
 * numbers. `--help` prints the comment that the file begins with.
 */
export function readFlags<const Options extends Flags>(
  file: string,
  options: Options,
  numbers: readonly (keyof Options & string)[] = [],
): ReturnType<typeof parseArgs<{ options: Options }>>['values'] {
  if (process.argv.includes('--help')) {
    const [comment = ''] = /^(?:\/\/.*\n)*/.exec(readFileSync(file, 'utf8')) ?? []
    console.log(comment.replaceAll(/^\/\/ ?/gm, '').trimEnd())
    process.exit(0)
  }
  try {
    const { values } = parseArgs({ options })
    for (const name of numbers) {
      const text = Reflect.get(values, name) as string | undefined // as its option is declared
      if (text === undefined) continue
      if (!/^\d[\d_]*(?:\.\d+)?$/.test(text)) throw new Error(`--${name} must be a number, not "${text}"`)
      Reflect.set(values, name, text.replaceAll('_', ''))
    }
    return values
  } catch (cause) {
    console.error(`error: ${cause instanceof Error ? cause.message : String(cause)}; --help has the flags`)
    process.exit(2)
  }
}
