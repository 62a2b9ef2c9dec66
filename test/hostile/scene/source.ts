// The library of the source tree under test: this one, or with `--source` an older one to compare with.

import { join } from 'node:path'
import type * as Library from '../../../src/index.ts'
import type { ServerLimits } from '../../../src/index.ts'
import type * as ServerOptions from '../../../src/server/settings/options.ts'

export async function libraryAt(source: string): Promise<typeof Library> {
  // The same library, of another commit perhaps: what is used here has been there from the beginning.
  return (await import(join(source, 'src/index.ts'))) as typeof Library
}

/** Those of these limits that the tree has. */
export async function knownLimits(
  source: string,
  limits: Readonly<Record<string, number | undefined>> = {},
): Promise<Partial<ServerLimits>> {
  const { DEFAULT_LIMITS } = (await import(
    join(source, 'src/server/settings/options.ts')
  )) as typeof ServerOptions // likewise
  return Object.fromEntries(Object.entries(limits).filter(([name]) => name in DEFAULT_LIMITS))
}
