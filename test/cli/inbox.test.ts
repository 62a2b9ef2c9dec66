// The inbox of a server that is killed at any moment: what it acknowledged is delivered. LT_FUZZ=20 makes it 200 rounds.

import { afterEach, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { finish, start } from './bin.ts'

const TOKEN = 'a-token-of-the-test'
const ROUNDS = 10 * Number(process.env.LT_FUZZ ?? 1)

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function startServer(inbox: string, port: number) {
  const server = start([
    'server',
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '--token',
    TOKEN,
    '--inbox',
    inbox,
  ])
  closing.push(() => server[Symbol.asyncDispose]())
  await server.printed(/Listening|listening/)
  return server
}

const clientOf = (port: number, seen: string[]) => {
  const client = new TunnelClient({
    server: `http://127.0.0.1:${port}`,
    token: TOKEN,
    subdomain: 'hooks',
    inbox: { paths: ['/hooks/*'], answer: 200 },
    fetch: async request => {
      seen.push(await request.text())
      return new Response()
    },
  })
  client.on('error', () => {})
  closing.push(() => client.disconnect())
  return client
}

test(
  'killed at any moment, it loses nothing that it acknowledged',
  async () => {
    const dir = await folder('inbox')
    closing.push(() => dir[Symbol.asyncDispose]())
    const inbox = join(dir.path, 'inbox.db')
    const port = freePort()
    const acknowledged: string[] = []
    const seen: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const server = await startServer(inbox, port)
      if (round === 0) {
        const client = clientOf(port, [])
        await client.connect()
        await client.disconnect()
        expect(statSync(inbox).mode & 0o777).toBe(0o600)
      }
      const wanted = acknowledged.length + 1 + Math.floor(Math.random() * 40)
      let isOver = false
      const senders = Array.from({ length: 4 }, async (_, sender) => {
        for (let at = 0; !isOver; at++) {
          const body = `${round} ${sender} ${at}`
          const sent = ask(port, 'hooks.localhost', { method: 'POST', path: `/hooks/${sender}`, body })
          const answer = await sent.catch(() => undefined)
          if (answer?.status === 200) acknowledged.push(body)
          if (acknowledged.length >= wanted && !isOver) {
            isOver = true
            server.kill('SIGKILL')
          }
        }
      })
      await Promise.all(senders)
      await server.exited
    }
    await startServer(inbox, port)
    await clientOf(port, seen).connect()
    expect(acknowledged.length).toBeGreaterThan(ROUNDS)
    // Those that were kept and not acknowledged any more come, too.
    const missing = () => {
      const delivered = new Set(seen)
      return acknowledged.filter(body => !delivered.has(body))
    }
    for (let before = missing().length; before > 0; before = missing().length)
      await eventually(() => missing().length < before, 'what was acknowledged')
    // In order, path by path.
    for (const sender of ['0', '1', '2', '3']) {
      const own = seen.filter(body => body.split(' ')[1] === sender)
      const rank = (body: string) => Number(body.split(' ')[0]) * 1_000_000 + Number(body.split(' ')[2])
      expect(own).toEqual(own.toSorted((one, other) => rank(one) - rank(other)))
    }
  },
  20_000 * Math.max(1, ROUNDS / 20),
)

test('wrong words are said', async () => {
  const file = ['--inbox', '/dev/null/inbox.db']
  expect((await finish(['server', '--host', '127.0.0.1', '--port', '0', ...file])).stderr).toContain(
    'error OPTION_INVALID: The inbox /dev/null/inbox.db cannot be used',
  )
  const workers = ['server', '--workers', '2', '--host', '127.0.0.1', '--inbox', '/tmp/inbox.db']
  expect((await finish(workers)).stderr).toContain('inbox is for a server with one worker')
})
