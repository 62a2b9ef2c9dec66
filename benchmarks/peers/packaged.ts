// The command line as users run it: built as the package has it, not read from the sources.

import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { finish } from '../measure/children.ts'

const root = join(import.meta.dir, '../..')

/** Builds the package once for a state of the sources, into `.cache`, where it finds the dependencies; answers the program's path. */
export function packagedCommand(): Promise<string> {
  return built('package', 'bin/localtunnels.js', folder => ['tools/bundle.ts', folder])
}

/** The same for the single executable, around this runtime in place of a downloaded one. */
export function packagedBinary(): Promise<string> {
  const platform = `linux-${process.arch}`
  return built('binary', `localtunnels-${platform}`, folder => [
    ...['tools/binaries.ts', '--only', platform, '--to', folder],
    ...['--runtime', process.execPath],
  ])
}

async function built(
  name: string,
  program: string,
  flagsFor: (folder: string) => readonly string[],
): Promise<string> {
  const folder = join(root, '.cache', `${name}-${newest().toString(36)}`)
  if (!existsSync(folder)) {
    // Suites may start at once: each builds a folder of its own, and the first to end gives its name.
    const own = `${folder}-${process.pid}`
    const [tool = '', ...flags] = flagsFor(own)
    const { stderr } = await finish(['bun', join(root, tool), ...flags], { timeoutMs: 120_000 })
    if (!existsSync(join(own, program))) throw new Error(`the ${name} was not built: ${stderr}`)
    try {
      renameSync(own, folder)
    } catch {
      rmSync(own, { recursive: true }) // another suite was first
    }
  }
  return join(folder, program)
}

/** When a source was last changed, in whole milliseconds. */
function newest(): number {
  const files = ['src/**/*.ts', 'bin/*.ts', 'tools/{bundle,binaries}.ts', 'package.json'].flatMap(pattern => [
    ...new Glob(pattern).scanSync(root),
  ])
  return Math.ceil(Math.max(...files.map(file => statSync(join(root, file)).mtimeMs)))
}
