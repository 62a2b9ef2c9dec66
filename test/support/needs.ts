// Tests that need programs of other projects. Where one is missing the test is skipped, and its name says which; CI
// installs all of them and takes a skipped test for a failure.

import { describe, test } from 'bun:test'

type Body = () => undefined | Promise<unknown>

export function describeWith(programs: readonly string[], name: string, body: () => void): void {
  const missing = missingOf(programs)
  if (missing.length === 0) describe(name, body)
  else describe.skip(`${name} (not installed: ${missing.join(', ')})`, body)
}

export function testWith(
  programs: readonly string[],
  name: string,
  body: Body,
  ...options: readonly number[]
): void {
  const missing = missingOf(programs)
  if (missing.length === 0) test(name, body, ...options)
  else test.skip(`${name} (not installed: ${missing.join(', ')})`, body)
}

function missingOf(programs: readonly string[]): readonly string[] {
  return programs.filter(program => Bun.which(program) === null)
}

/**
 * A command that may not read what its file mode forbids: root may read everything, so as root it runs without the
 * capabilities of root (`setpriv` of util-linux, which every Linux has).
 */
export function withoutPrivileges(command: readonly string[]): string[] {
  if (process.getuid?.() !== 0) return [...command]
  return ['setpriv', '--bounding-set=-all', '--inh-caps=-all', ...command]
}
