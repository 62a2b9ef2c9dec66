// The directory of another process, over a unix socket.

import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { Lines } from '../../src/directories/lines.ts'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { UnixDirectory } from '../../src/directories/unix.ts'
import { DirectoryServer } from '../../src/directories/unix-server.ts'
import { CLUSTER_TIMES } from '../../src/parts/cluster/options.ts'
import { folder } from '../support/programs.ts'
import { within } from '../support/within.ts'

const TIMES = { ...CLUSTER_TIMES, earlyMs: 0 }

test('each call has the outcome of the directory there; changes are heard before the answer', async () => {
  await using dir = await folder('unix-directory')
  await using door = await DirectoryServer.open(`${dir.path}/directory`, new MemoryDirectory())
  const one = await UnixDirectory.open(door.path)
  const two = await UnixDirectory.open(door.path)
  const heard: unknown[] = []
  const stop = await two.listen({ changed: (...change) => void heard.push(change), reconnected() {} })
  expect(await one.beat({ id: 'a', url: 'unix:/a' }, TIMES, 0)).toMatchObject({ isKnown: false })
  expect(await one.beat({ id: 'a', url: 'unix:/a' }, TIMES, 0)).toMatchObject({ isKnown: true })
  const wish = { name: 'shop', shown: '', next: 'proof', isShared: false }
  const granted = await one.claim('a', wish, TIMES)
  expect(granted).toMatchObject({ kind: 'granted', isProved: false })
  const epoch = granted.kind === 'granted' ? granted.epoch : 0
  await two.beat({ id: 'b', url: 'unix:/b' }, TIMES, 0)
  expect(heard).toEqual([['shop', 'a', epoch]])
  expect(await two.claim('b', wish, TIMES)).toEqual({ kind: 'taken' })
  expect(await two.find('shop')).toEqual([{ id: 'a', url: 'unix:/a' }])
  const proved = await two.claim('b', { ...wish, shown: 'proof' }, TIMES)
  expect(proved).toMatchObject({ kind: 'granted', isProved: true })
  const later = proved.kind === 'granted' ? proved.epoch : 0
  expect(later).toBeGreaterThan(epoch)
  expect(await one.restore('a', [{ name: 'shop', epoch, proof: 'proof', isShared: false }], TIMES)).toEqual([
    'shop',
  ])
  expect(await one.secret('x')).toBe(await two.secret('y'))
  await one.leave('a')
  expect(await two.nodes()).toEqual([{ id: 'b', url: 'unix:/b' }])
  stop()
  await two.release('b', 'shop', later)
  expect(await one.find('shop')).toEqual([])
  expect(heard).toEqual([
    ['shop', 'a', epoch],
    ['shop', 'b', later],
  ])
  await Promise.all([one.close(), two.close()])
})

test('what waits fails when the other process is gone, and so does what is asked after', async () => {
  await using dir = await folder('unix-directory')
  const silent = new MemoryDirectory()
  silent.find = () => new Promise(() => {})
  const door = await DirectoryServer.open(`${dir.path}/directory`, silent)
  const directory = await UnixDirectory.open(door.path)
  await directory.nodes()
  const waiting = directory.find('shop').catch((error: Error) => error.message)
  await door[Symbol.asyncDispose]()
  expect(await waiting).toBe('the process of the directory is gone')
  expect(await directory.nodes().catch((error: Error) => error.message)).toBe(
    'the process of the directory is gone',
  )
  expect(await UnixDirectory.open(door.path).catch(() => 'nobody is there')).toBe('nobody is there')
})

test('who speaks something else is cut, and harms no one', async () => {
  await using dir = await folder('unix-directory')
  await using door = await DirectoryServer.open(`${dir.path}/directory`, new MemoryDirectory())
  const stranger = connect(door.path)
  const gone = Promise.withResolvers<void>()
  stranger.on('error', () => {})
  stranger.on('close', () => gone.resolve())
  stranger.write('GET / HTTP/1.1\r\n\r\n')
  await within(gone.promise, 'the end of the stranger')
  const directory = await UnixDirectory.open(door.path)
  expect(await directory.nodes()).toEqual([])
  await directory.close()
})

test('a line comes in whatever pieces; one that is too long ends it', () => {
  const seen: unknown[] = []
  const lines = new Lines(value => void seen.push(value), 16)
  for (const byte of Buffer.from('{"a":1}\n[2]\n')) expect(lines.take(Uint8Array.of(byte))).toBe(true)
  expect(seen).toEqual([{ a: 1 }, [2]])
  expect(lines.take(Buffer.from('1234567890'))).toBe(true)
  expect(lines.take(Buffer.from('1234567'))).toBe(false)
  expect(new Lines(() => {}).take(Buffer.from('no JSON\n'))).toBe(false)
})
