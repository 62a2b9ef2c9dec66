// Removes variables that Bun read from a `.env` file of the current folder.

import { existsSync } from 'node:fs'
import { openLibc } from '../../libc.ts'
import { EXIT } from '../exit-codes.ts'

const FILES: readonly string[] = ['', '.development', '.production', '.test'].flatMap(mode => [
  `.env${mode}`,
  `.env${mode}.local`,
])

/** The options with which Bun neither runs nor reads files of the folder, as in the launcher in `bin/`. */
export const LAUNCH_OPTIONS: readonly string[] = [
  '--use-system-ca',
  '--no-env-file',
  '--config=/dev/null',
  '--tsconfig-override=/dev/null',
]

/**
 * Starts this program again without the file if Bun has read one, as after `bun bin/localtunnels.ts`, which bypasses the launcher
 * in `bin/`. Node reads no such file. Resolves when the environment is the one that the process was given.
 */
export async function leaveFolderOut(): Promise<void> {
  if (typeof Bun === 'undefined' || !readsFiles() || !FILES.some(name => existsSync(name))) return
  const environment = await givenEnvironment()
  const { execPath, execArgv, argv } = process
  if (environment !== undefined) {
    const options = [...execArgv, ...LAUNCH_OPTIONS]
    // The process keeps its id, its terminal and its signals. Does not return.
    process.execve?.(execPath, [execPath, ...options, ...argv.slice(1)], environment)
  }
  const text = 'There is a .env file in this folder, and Bun has read it. Start it as: bun --no-env-file'
  process.stderr.write(`error RUNTIME_UNSUPPORTED: ${text} ${argv[1]}\n`)
  process.exit(EXIT.usage)
}

/**
 * Whether Bun reads such files. A file that an option names was chosen by the user. In a single executable, the build decides.
 */
function readsFiles(): boolean {
  const isDecided = process.execArgv.some(option => /^--(?:no-env-file|env-file(?:=.*)?)$/.test(option))
  return !isDecided && !Bun.isStandaloneExecutable
}

/** Returns the environment without Bun's additions. The C library still has the original one. */
async function givenEnvironment(): Promise<Record<string, string> | undefined> {
  try {
    const ffi = await import('bun:ffi')
    const libc = openLibc(ffi, { getenv: { args: ['buffer'], returns: 'ptr' } })
    const given: Record<string, string> = {}
    for (const name of Object.keys(process.env)) {
      const value = libc.getenv(Buffer.from(`${name}\0`))
      if (value !== null) given[name] = new ffi.CString(value).toString()
    }
    return given
  } catch {
    // No such library, as on Windows: the caller continues without it.
    return undefined
  }
}
