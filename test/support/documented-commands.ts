// The command lines that a page shows.

import { idleProgram } from './idle-program.ts'

const program = await idleProgram()

/** Flags of the `localtunnels` commands in a page that these commands do not have, or that lack their value. */
export function unknownWords(page: string): readonly string[] {
  const unknown: string[] = []
  for (const [, words = ''] of page
    .replaceAll('\\\n', ' ')
    .matchAll(/^(?:sudo )?localtunnels (.*?)(?:\s+#.*)?$/gm)) {
    const [own = ''] = words.split(' -- ')
    let command = program
    for (const word of own.split(/\s+/))
      command = command.commands.find(one => one.name() === word) ?? command
    const flags = new Set(command.options.flatMap(({ long, short }) => [long, short]))
    const needValue = new Set(
      command.options.filter(option => option.required).flatMap(({ long, short }) => [long, short]),
    )
    for (const [, flag = '', next] of own.matchAll(/(?<=\s|^)(--?[a-z][a-z-]*)(?=\s+(\S)|\s*$|[=\s])/g)) {
      if (!flags.has(flag)) unknown.push(`${command.name()} ${flag}`)
      else if (needValue.has(flag) && (next === undefined || next === '-'))
        unknown.push(`${command.name()} ${flag} without a value`)
    }
  }
  return unknown
}
