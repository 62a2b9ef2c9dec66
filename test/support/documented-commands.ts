// The command lines that a page shows.

import { idleProgram } from './idle-program.ts'

/** Flags of the `localtunnels` commands in a page that these commands do not have. */
export function unknownWords(page: string): readonly string[] {
  const program = idleProgram()
  const unknown: string[] = []
  for (const [, words = ''] of page
    .replaceAll('\\\n', ' ')
    .matchAll(/^(?:sudo )?localtunnels (.*?)(?:\s+#.*)?$/gm)) {
    const [own = ''] = words.split(' -- ')
    let command = program
    for (const word of own.split(/\s+/))
      command = command.commands.find(one => one.name() === word) ?? command
    const flags = new Set(command.options.flatMap(({ long, short }) => [long, short]))
    for (const [flag] of own.matchAll(/(?<=\s|^)--?[a-z][a-z-]*/g))
      if (!flags.has(flag)) unknown.push(`${command.name()} ${flag}`)
  }
  return unknown
}
