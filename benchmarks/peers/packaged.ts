// The command line as users run it: built as the package has it, not read from the sources.

import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { finish } from '../measure/children.ts'

const root = join(import.meta.dir, '../..')

/** Builds it once for a state of the sources, into `.cache`, where it finds the dependencies; answers the program's path. */
export async function packagedCommand(): Promise<string> {
  const folder = join(root, '.cache', `package-${newest().toString(36)}`)
  if (!existsSync(folder)) {
    // Suites may start at once: each builds a folder of its own, and the first to end gives its name.
    const own = `${folder}-${process.pid}`
    const built = await finish(['bun', join(root, 'tools/bundle.ts'), own], { timeoutMs: 120_000 })
    if (!existsSync(join(own, 'bin/localtunnels.js')))
      throw new Error(`the package was not built: ${built.stderr}`)
    try {
      renameSync(own, folder)
    } catch {
      rmSync(own, { recursive: true }) // another suite was first
    }
  }
  return join(folder, 'bin/localtunnels.js')
}

/** When a source was last changed, in whole milliseconds. */
function newest(): number {
  const files = ['src/**/*.ts', 'bin/*.ts', 'tools/bundle.ts', 'package.json'].flatMap(pattern => [
    ...new Glob(pattern).scanSync(root),
  ])
  return Math.ceil(Math.max(...files.map(file => statSync(join(root, file)).mtimeMs)))
}
