// The examples in the docstrings of the contracts run.

import { expect, test } from 'bun:test'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

test('each contract has an example, which is well-typed and runs', async () => {
  const text = await Bun.file(join(root, 'src/plugin.ts')).text()
  const examples = [...text.matchAll(/\* ```ts\n([\s\S]*?) \* ```/g)].map(([, lines = '']) =>
    lines.replace(/^ \* ?/gm, ''),
  )
  expect(examples).toHaveLength(3)
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-plugins-'))
  try {
    const index = JSON.stringify(join(root, 'src/index.ts'))
    const files = examples.map((_, number) => join(folder, `${number}.ts`))
    for (const [number, code] of examples.entries())
      await writeFile(files[number] ?? '', code.replaceAll("'localtunnels'", index))
    const compilerOptions = {
      rewriteRelativeImportExtensions: false,
      typeRoots: [join(root, 'node_modules/@types')],
    }
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'] }),
    )
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    const tsc = Bun.spawn([join(root, 'node_modules/.bin/tsc'), '-p', folder, '--noEmit'], { stdout: 'pipe' })
    expect(await new Response(tsc.stdout).text()).toBe('')
    for (const file of files) {
      const program = Bun.spawn(['bun', file], { stderr: 'pipe' })
      expect(await new Response(program.stderr).text()).toBe('')
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}, 60_000)
