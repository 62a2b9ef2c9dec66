// This package as npm installs it, in the node_modules of a project: JavaScript that Node runs.

import { mkdir, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dir, '../..')

/** `entries`: those of package.json that the project imports, such as `./vite`. */
export async function installOwnPackage(project: string, entries: readonly string[]): Promise<void> {
  const place = join(project, 'node_modules/localtunnels')
  await mkdir(join(place, 'node_modules'), { recursive: true })
  const { exports, dependencies } = await Bun.file(join(root, 'package.json')).json()
  for (const name of Object.keys(dependencies))
    await symlink(join(root, 'node_modules', name), join(place, 'node_modules', name))
  await Bun.write(
    join(place, 'package.json'),
    JSON.stringify({ name: 'localtunnels', type: 'module', exports }),
  )
  const sources = entries.map(entry =>
    String(exports[entry].default).replace('./dist/', '').replace(/js$/, 'ts'),
  )
  const { success, logs } = await Bun.build({
    entrypoints: sources.map(source => join(root, source)),
    root,
    outdir: join(place, 'dist'),
    target: 'node',
    splitting: true,
    packages: 'external',
    external: ['bun', 'bun:*'],
  })
  if (!success) throw new Error(logs.map(({ message }) => message).join('\n'))
}
