// Where a peer's program is: in the cache that `install.ts` fills, else on the PATH.

import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/** The program's path, when `detectBinary` found it before. */
export function need(name: string): string {
  const path = binary(name)
  if (!path) throw new Error(`${name} is not installed: bun benchmarks/peers/install.ts`)
  return path
}

/** A command line as one would type it. Blanks separate; values that may hold one belong into `more`. */
export function command(program: string, flags: string, ...more: readonly string[]): readonly string[] {
  return [need(program), ...flags.split(' '), ...more]
}

/** A folder for a peer's configuration files, gone with `remove`. */
export function scratch(name: string): { path(this: void, file: string): string; remove(this: void): void } {
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`))
  return {
    path: file => join(folder, file),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
