// Plugins that a configuration file names: what kinds of them a module may hold, and what is said of one that is none.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadPlugins } from '../../src/cli/server/plugin-files.ts'
import { ask } from '../support/ask.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-plugins-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function moduleOf(name: string, text: string): Promise<string> {
  const path = join(folder, name)
  await Bun.write(path, text)
  return path
}

test('a module has one plugin or several, also of classes', async () => {
  const one = await moduleOf('one.ts', `export default { name: 'one', admit: () => undefined }`)
  const several = await moduleOf(
    'several.ts',
    `class Both { name = 'both'; handle(request: Request, next: (r: Request) => unknown) { return next(request) } ended() {} }
     export default [new Both(), { name: 'three', began() {} }]`,
  )
  const { guards, middlewares, observers } = await loadPlugins([one, several])
  expect(guards.map(({ name }) => name)).toEqual(['one'])
  expect(middlewares.map(({ name }) => name)).toEqual(['both'])
  expect(observers.map(({ name }) => name)).toEqual(['both', 'three'])
})

test.each([
  ['nothing.ts', 'export const x = 1', 'neither a guard'],
  ['number.ts', 'export default 7', 'neither a guard'],
  ['promise.ts', 'export default Promise.resolve({ admit: () => undefined })', 'export default await'],
  ['throws.ts', "throw new Error('at the top')", 'at the top'],
])('%s is no plugin', async (name, text, says) => {
  expect(loadPlugins([await moduleOf(name, text)])).rejects.toThrow(says)
})

test('a server that a file describes asks its guard', async () => {
  await moduleOf(
    'closed.ts',
    `export default { name: 'closed', admit: () => ({ status: 418, body: 'closed', headers: [['content-type', 'text/plain']] }) }`,
  )
  const config = await moduleOf('server.toml', 'port = 0\nhost = "127.0.0.1"\nplugins = ["./closed.ts"]\n')
  const bin = join(import.meta.dir, '../../bin/localtunnels.ts')
  const server = Bun.spawn(['bun', bin, 'server', '--config', config, '--json'], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  let client: Bun.Subprocess<'ignore', 'pipe', 'ignore'> | undefined
  try {
    const port = Number(await found(server.stdout, /"port":(\d+)/))
    const words = ['3000', '--server', `http://127.0.0.1:${port}`, '--subdomain', 'shop', '--json']
    client = Bun.spawn(['bun', bin, ...words], { stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' })
    await found(client.stdout, /"url":"([^"]+)"/)
    expect(await ask(port, 'shop.localhost')).toMatchObject({ status: 418, body: 'closed' })
  } finally {
    client?.kill('SIGTERM')
    await client?.exited
    server.kill('SIGTERM')
    await server.exited
  }
}, 60_000)

/** What the pattern finds in what a process prints, which stays open: one whose reader leaves stops. */
async function found(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<string> {
  const reader = stream.getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`not found in: ${text}`)
    text += new TextDecoder().decode(value)
    const [, match] = pattern.exec(text) ?? []
    if (match !== undefined) return match
  }
}
