// What is inside the package: a CycloneDX 1.6 document of the runtime dependencies, as bun.lock pins them.

import { join, resolve } from 'node:path'
import { VERSION } from '../src/version.ts'

const root = resolve(import.meta.dir, '..')

interface Component {
  readonly type: 'library' | 'application'
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses: readonly { readonly license: { readonly id: string } }[]
}

/** It is a part of every single executable. */
const RUNTIME: Component = {
  type: 'library',
  name: 'bun',
  version: Bun.version,
  purl: `pkg:npm/bun@${Bun.version}`,
  licenses: [{ license: { id: 'MIT' } }],
}

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly dependencies?: Readonly<Record<string, string>>
}

export async function components(): Promise<object> {
  const own = await manifest(root)
  const found = new Map<string, Component>()
  await collect(own, root, found)
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...component(own), type: 'application', version: VERSION } },
    components: [RUNTIME, ...found.values()].sort((a, b) => a.purl.localeCompare(b.purl)),
  }
}

/** All that `of` needs, and what that needs. Installed are the versions of bun.lock: the install is frozen in CI. */
async function collect(of: Manifest, folder: string, found: Map<string, Component>): Promise<void> {
  for (const name of Object.keys(of.dependencies ?? {})) {
    const place = join(folder, 'node_modules', name)
    const home = (await Bun.file(join(place, 'package.json')).exists())
      ? place
      : join(root, 'node_modules', name)
    const needed = await manifest(home)
    const one = component(needed)
    if (found.has(one.purl)) continue
    found.set(one.purl, one)
    await collect(needed, home, found)
  }
}

function component({ name, version, license }: Manifest): Component {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { type: 'library', name, version, purl, licenses: [{ license: { id: license } }] }
}

async function manifest(folder: string): Promise<Manifest> {
  // Written by npm, and checked by it.
  return (await Bun.file(join(folder, 'package.json')).json()) as Manifest
}
