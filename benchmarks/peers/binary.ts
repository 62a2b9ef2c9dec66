// Where a peer's program is: in the cache that `install.ts` fills, else on the PATH. And temporary folders.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { finish } from '../measure/children.ts'
import type { Detected } from './peer.ts'

/** `LT_PEERS`, else `.cache/peers` of this repository, which git ignores. */
export const peersFolder: string = process.env.LT_PEERS ?? join(import.meta.dir, '../../.cache/peers')

export function binary(name: string): string | null {
  const cached = join(peersFolder, 'bin', name)
  return existsSync(cached) ? cached : Bun.which(name)
}

/**
 * Looks for the program and asks its version. `install.ts` leaves a note beside what it built, because some builds
 * from source do not know their own.
 */
export async function detectBinary(
  name: string,
  versionFlag: string,
  remedy = 'bun benchmarks/peers/install.ts',
): Promise<Detected> {
  const path = binary(name)
  if (!path) return { missing: `${name} is not installed: ${remedy}` }
  const note = Bun.file(`${path}.version`)
  if (await note.exists()) return { version: (await note.text()).trim() }
  const { stdout, stderr } = await finish([path, ...versionFlag.split(' ')], { timeoutMs: 5_000 })
  return { version: /\d+\.\d+(\.\d+)?/.exec(stdout + stderr)?.[0] ?? 'unknown' }
}

/** A command line as one would type it. Blanks separate; values that may hold one belong into `more`. */
export function command(program: string, flags = '', ...more: readonly string[]): readonly string[] {
  const path = binary(program)
  if (!path) throw new Error(`${program} is not installed: bun benchmarks/peers/install.ts`)
  return [path, ...flags.split(' ').filter(Boolean), ...more]
}

export interface Scratch {
  path(this: void, file: string): string
  /** Writes a file and gives its path. */
  write(this: void, file: string, content: string | Uint8Array): string
  read(this: void, file: string): string
  remove(this: void): void
}

const folders = new Set<string>()
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A temporary folder: gone with `remove`, or when this process ends. */
export function scratch(name: string): Scratch {
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`))
  folders.add(folder)
  const path = (file: string): string => join(folder, file)
  return {
    path,
    write(file, content) {
      mkdirSync(dirname(path(file)), { recursive: true })
      writeFileSync(path(file), content)
      return path(file)
    },
    read: file => readFileSync(path(file), 'utf8'),
    remove() {
      rmSync(folder, { recursive: true, force: true })
      folders.delete(folder)
    },
  }
}
