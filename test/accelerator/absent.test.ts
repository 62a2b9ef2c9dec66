// The product without the accelerator's folder: everything works, and every byte passes the main thread.

import { expect, test } from 'bun:test'
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')

/** A copy of the project whose folder of the accelerator has a door, and nothing behind it. */
async function withoutFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  await cp(join(ROOT, 'src'), join(path, 'src'), { recursive: true })
  await rm(join(path, 'src/accelerator'), { recursive: true })
  await mkdir(join(path, 'src/accelerator'))
  await writeFile(join(path, 'src/accelerator/door.ts'), 'export const accelerator = undefined\n')
  await mkdir(join(path, 'test/support'), { recursive: true })
  await cp(join(ROOT, 'test/support/whole-product.ts'), join(path, 'test/support/whole-product.ts'))
  await cp(join(ROOT, 'package.json'), join(path, 'package.json'))
  // The style of the pages is made when they are read.
  await cp(join(ROOT, 'tools'), join(path, 'tools'), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

async function run(root: string): Promise<unknown> {
  const child = Bun.spawn(['bun', join(root, 'test/support/whole-product.ts')], { cwd: root, stderr: 'pipe' })
  const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(errors).toBe('')
  return JSON.parse(out)
}

const ALL_RIGHT = {
  easy: true,
  download: true,
  upload: true,
  webSocket: 'hello',
  echoed: true,
  links: true,
}

test('HTTP, WebSockets, bulk on links and TCP work without the folder', async () => {
  await using copy = await withoutFolder()
  expect(await readdir(join(copy.path, 'src/accelerator'))).toEqual(['door.ts'])
  expect(await run(copy.path)).toEqual(ALL_RIGHT)
})

test('and with it', async () => {
  expect(await run(ROOT)).toEqual(ALL_RIGHT)
})
