// The inbox of a server that is killed at any moment: what it acknowledged is delivered. LT_FUZZ=20 makes it 200 rounds.
// Over 5 s: a server process is killed and started again and again.

import { afterEach, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { Redis } from '../support/redis.ts'
import { finish, start } from './bin.ts'
import { closeAll, signal, Team } from './team.ts'

const TOKEN = 'a-token-of-the-test'
const ROUNDS = 10 * Number(process.env.LT_FUZZ ?? 1)

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await closeAll()
})

async function startServer(inbox: string, port: number, ...more: string[]) {
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
    ...more,
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
    inbox: { paths: ['/hooks/*'], status: 200 },
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

testWith(
  ['redis-server'],
  'servers of a cluster, of which one or the other is killed, lose nothing either',
  async () => {
    const dir = await folder('inbox')
    closing.push(() => dir[Symbol.asyncDispose]())
    const redis = await Redis.start('redis-server')
    closing.push(() => redis[Symbol.asyncDispose]())
    const ports = [freePort(), freePort()] as const
    const started = (at: 0 | 1) =>
      startServer(
        join(dir.path, `${at}.db`),
        ports[at],
        '--cluster',
        redis.url,
        '--peer-url',
        `http://127.0.0.1:${ports[at]}`,
      )
    const servers = [await started(0), await started(1)]
    const first = clientOf(ports[0], [])
    await first.connect()
    await first.disconnect()
    const acknowledged: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const killed = round % 2 === 0 ? 0 : 1
      let isOver = false
      const wanted = acknowledged.length + 1 + Math.floor(Math.random() * 40)
      const senders = Array.from({ length: 4 }, async (_, sender) => {
        for (let at = 0; !isOver; at++) {
          const body = `${round} ${sender} ${at}`
          const path = `/hooks/${sender}`
          const port = ports[(sender + at) % 2 === 0 ? 0 : 1]
          const answer = await ask(port, 'hooks.localhost', { method: 'POST', path, body }).catch(
            () => undefined,
          )
          if (answer?.status === 200) acknowledged.push(body)
          if (acknowledged.length < wanted || isOver) continue
          isOver = true
          servers[killed]?.kill('SIGKILL')
        }
      })
      await Promise.all(senders)
      await servers[killed]?.exited
      servers[killed] = await started(killed)
    }
    const seen: string[] = []
    await clientOf(ports[1], seen).connect()
    const missing = () => {
      const delivered = new Set(seen)
      return acknowledged.filter(body => !delivered.has(body))
    }
    for (let before = missing().length; before > 0; before = missing().length)
      await eventually(() => missing().length < before, 'what was acknowledged')
  },
  30_000 * Math.max(1, ROUNDS / 20),
)

test.if(process.platform === 'linux')(
  'workers have one inbox: killed at any moment they lose nothing, and keep the order',
  async () => {
    const dir = await folder('inbox')
    closing.push(() => dir[Symbol.asyncDispose]())
    const flags = ['--inbox', join(dir.path, 'inbox.db'), '--token', TOKEN]
    const seen: string[] = []
    const acknowledged: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const team = await Team.start(2, ...flags)
      if (round === 0) {
        const first = clientOf(team.port, [])
        await first.connect()
        await first.disconnect()
      }
      const pids = [...team.workers().values()]
      // A worker that ends before its parent has heard that it serves ends all of them.
      const gone = team.run.exited.then(() => 'gone' as const)
      for (let at = 0; at < 10; at++) {
        const body = `${round} ${at}`
        const headers = { 'webhook-id': body }
        const sent = () =>
          ask(team.port, 'hooks.localhost', { method: 'POST', path: '/hooks/a', body, headers })
            .then(({ status }) => status)
            .catch(() => 0)
        // As a provider does: until it is acknowledged, perhaps by another worker that has it already.
        let status: number | 'gone' = 0
        while (status !== 200 && status !== 'gone') status = await Promise.race([gone, sent()])
        if (status === 'gone') break
        acknowledged.push(body)
        if (at === round % 10) signal(pids[round % 2] ?? Number.NaN, 'SIGKILL')
      }
      await closeAll()
    }
    const { port } = await Team.start(2, ...flags)
    const client = clientOf(port, seen)
    await client.connect()
    const last = acknowledged.at(-1) ?? ''
    for (let before = -1; !seen.includes(last) && seen.length > before; ) {
      before = seen.length
      await eventually(() => seen.length > before, 'what was acknowledged')
    }
    // Those that were kept and not acknowledged any more come, too.
    const known = new Set(acknowledged)
    expect(seen.filter(body => known.has(body))).toEqual(acknowledged)
  },
  60_000 * Math.max(1, ROUNDS / 20),
)

test('wrong words are said', async () => {
  const file = ['--inbox', '/dev/null/inbox.db']
  expect((await finish(['server', '--host', '127.0.0.1', '--port', '0', ...file])).stderr).toContain(
    'error OPTION_INVALID: The inbox /dev/null/inbox.db cannot be used',
  )
})
