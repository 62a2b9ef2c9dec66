// A unix socket is closed to other users from the moment that it has a name, whatever the umask says.

import { afterAll, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryDirectory } from '../src/directories/memory.ts'
import { DirectoryServer } from '../src/directories/unix-server.ts'
import { bindPrivately } from '../src/private-socket.ts'
import { folder } from './support/programs.ts'

const { path: own, [Symbol.asyncDispose]: remove } = await folder('private-socket')
const before = process.umask(0)
afterAll(() => {
  process.umask(before)
  return remove()
})
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

test('what binds it already finds it closed; the umask is as before, also after a failure', () => {
  const path = join(own, 'bound')
  const bind = () => Bun.listen({ unix: path, socket: { data() {} } })
  const [listening, mode] = bindPrivately(path, () => [bind(), modeOf(path)] as const)
  expect(mode).toBe('700')
  expect(() => bindPrivately(path, bind)).toThrow()
  expect(process.umask()).toBe(0)
  listening.stop()
})

test('the directory of workers is closed before it is open', async () => {
  const path = join(own, 'directory')
  const opening = DirectoryServer.open(path, new MemoryDirectory())
  expect(modeOf(path)).toBe('700')
  await using _door = await opening
  expect(modeOf(path)).toBe('700')
})

test('a thread, which has no umask of its own, closes it at once', async () => {
  const path = join(own, 'thread')
  const program = `
    import { bindPrivately } from ${JSON.stringify(join(import.meta.dir, '../src/private-socket.ts'))}
    const listening = bindPrivately(${JSON.stringify(path)}, () => Bun.listen({ unix: ${JSON.stringify(path)}, socket: { data() {} } }))
    postMessage('bound')
    onmessage = () => listening.stop()`
  const file = join(own, 'thread.ts')
  await Bun.write(file, program)
  const worker = new Worker(file)
  await new Promise(resolve => worker.addEventListener('message', resolve, { once: true }))
  expect(modeOf(path)).toBe('700')
  worker.postMessage('stop')
  worker.terminate()
})
