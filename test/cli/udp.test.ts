// The real bin sharing a UDP service.

import { afterEach, expect, test } from 'bun:test'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { finish, type Running, start } from './bin.ts'

const runs: Running[] = []
afterEach(async () => {
  await Promise.all(runs.splice(0).map(run => run[Symbol.asyncDispose]()))
})

function open(run: Running): Running {
  runs.push(run)
  return run
}

test('stdout is the address alone, and datagrams go both ways', async () => {
  await using service = await datagramApp()
  const run = open(start(['udp', `127.0.0.1:${service.port}`, '--idle-timeout', '5']))
  const port = Number(await run.printed(/^udp:\/\/localhost:(\d+)\n/m))
  await using visitor = await DatagramVisitor.to(port)
  expect(new TextDecoder().decode(await visitor.ask('hello'))).toBe('hello')
  run.kill('SIGTERM')
  expect(await run.exited).toBe(0)
  expect(run.stdout).toBe(`udp://localhost:${port}\n`)
})

test('a service that does not listen is an error line, once a datagram has met it', async () => {
  const gone = await datagramApp()
  await gone[Symbol.asyncDispose]()
  const run = open(start(['udp', `${gone.port}`]))
  const port = Number(await run.printed(/^udp:\/\/localhost:(\d+)\n/m))
  await using visitor = await DatagramVisitor.to(port)
  await visitor.send('is anybody there?')
  await run.printed(new RegExp(`Nothing listens on UDP localhost:${gone.port}`))
})

test('a unix socket is refused, and so is a time that is none', async () => {
  const unix = await finish(['udp', 'unix:/run/app.sock'])
  expect([unix.exitCode, unix.stderr]).toEqual([2, expect.stringContaining('UDP needs a port')])
  const time = await finish(['udp', '53', '--idle-timeout', 'soon'])
  expect(time.exitCode).toBe(2)
})
