// A page of src/ui as one file. In the source tree it is built when a browser first asks for it. A package and an
// executable contain built pages in place of this module (tools/pages.ts).

import { TunnelError } from '../errors.ts'

export type PageName = 'inspector' | 'admin'

export interface BuiltPage {
  readonly html: string
  /** The hashes of the only script and the only style that the page may have, in the form of Content-Security-Policy. */
  readonly scriptHash: string
  readonly styleHash: string
}

const built = new Map<PageName, Promise<BuiltPage>>()

/** Returns the built page. Rejects if it cannot be built. */
export function builtPage(name: PageName): Promise<BuiltPage> {
  const known = built.get(name) ?? build(name)
  built.set(name, known)
  known.catch(() => built.delete(name))
  return known
}

async function build(name: PageName): Promise<BuiltPage> {
  const { buildPage } = await import('../../tools/pages.ts')
  try {
    return await buildPage(name)
  } catch (cause) {
    const detail = 'This page is built with packages for developing: run bun install, without --production.'
    throw new TunnelError('INTERNAL', detail, { cause })
  }
}
