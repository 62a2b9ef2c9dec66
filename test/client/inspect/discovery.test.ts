// Where commands look for the inspectors of their user, when nothing says it.

import { expect, test } from 'bun:test'
import { join } from 'node:path'

const MODULE = join(import.meta.dir, '../../../src/parts/inspect/discovery.ts')

test.skipIf(process.platform === 'win32')(
  'the folder is that of the user, also where no variable names the user',
  async () => {
    const code = `console.log((await import(${JSON.stringify(MODULE)})).runtimeFolder({}))`
    const folders = [{}, { USER: 'somename' }].map(async environment => {
      const { stdout } = Bun.spawn([process.execPath, '-e', code], { env: environment, stdout: 'pipe' })
      return (await new Response(stdout).text()).trim()
    })
    const [without, other] = await Promise.all(folders)
    expect(without).toEndWith(`localtunnels-${process.getuid?.()}`)
    expect(other).toBe(without ?? '')
  },
)
