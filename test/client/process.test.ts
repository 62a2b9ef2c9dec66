// Clients that die, freeze and come back, as processes of their own; and what of one request may reach another.

import { expect, test } from 'bun:test'
import { connectTunnel } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually, until } from '../support/events.ts'
import { ClientProcess } from '../support/processes.ts'
import { RawOrigin } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

const FUZZ = Number(process.env.LT_FUZZ ?? 1)

test('kill -9 of the client: what is in flight is 502 within 2 s, and the name is free after the lease', async () => {
  using origin = new RawOrigin()
  await using server = await startServer({ limits: { leaseMs: 300, holdTimeoutMs: 100 } })
  await using client = new ClientProcess(`127.0.0.1:${server.port}`, 'app', origin.port)
  await client.event('connected')
  const asking = ask(server.port, 'app.localhost')
  await (await origin.accept()).until('\r\n\r\n')
  const killedAt = performance.now()
  client.kill('SIGKILL')
  expect(await asking).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
  expect(performance.now() - killedAt).toBeLessThan(2_000)
  expect(server.getStats()).toMatchObject({ connections: 0, pendingResponses: 0 })
  await eventually(() => server.getStats().activeSubdomains === 0, 'the lease to end')
})

test('a client that is frozen beyond its lease of life answers again soon after it thaws, under its name', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  await using server = await startServer({ limits: { pingIntervalMs: 50, deadAfterMs: 200 } })
  await using client = new ClientProcess(`127.0.0.1:${server.port}`, 'app', app.port ?? 0)
  await client.event('connected')
  await client.freeze()
  await until(server, 'disconnection', () => server.getStats().connections === 0)
  // It waits for the client, as any visitor meanwhile does.
  const waiting = ask(server.port, 'app.localhost')
  await eventually(() => server.getStats().pendingResponses === 1, 'the request to be held')
  const thawedAt = performance.now()
  client.kill('SIGCONT')
  expect(await waiting).toMatchObject({ status: 200, body: 'hello' })
  expect(performance.now() - thawedAt).toBeLessThan(1_000)
  expect(await client.event('connected')).toBe('app')
})

test('three tunnels under cuts: no visitor ever gets an answer that is not its own', async () => {
  await using server = await startServer({ limits: { holdTimeoutMs: 2_000 } })
  using proxy = new TcpProxy(server.port)
  const names = ['one', 'two', 'three']
  const clients = await Promise.all(
    names.map(name =>
      connectTunnel({
        server: `127.0.0.1:${proxy.port}`,
        subdomain: name,
        maxBackoffMs: 20,
        async fetch(request) {
          const { pathname } = new URL(request.url)
          const body = await request.text()
          // Some answers take a turn or two, so that they are under way when the carrier breaks.
          if (body.length % 3 === 0) await Bun.sleep(body.length % 5)
          return new Response(`${name} ${pathname} ${body}`)
        },
      }),
    ),
  )
  let answered = 0
  let failed = 0
  const visitor = async () => {
    for (let count = 0; count < 150 * FUZZ; count++) {
      const name = names[count % 3]!
      const id = crypto.randomUUID()
      const body = id.repeat(1 + (count % 40))
      try {
        const answer = await ask(server.port, `${name}.localhost`, { path: `/${id}`, method: 'POST', body })
        if (answer.status === 200) {
          answered++
          if (answer.body !== `${name} /${id} ${body}`) throw new Error(`a foreign answer: ${answer.body}`)
        } else failed++
      } catch (error) {
        if (error instanceof Error && error.message.startsWith('a foreign')) throw error
        failed++
      }
    }
  }
  let isOver = false
  const cutting = (async () => {
    for (let round = 0; !isOver; round++) {
      await Bun.sleep(40)
      proxy.cutAll(round % 2 === 0 ? 'end' : 'reset')
    }
  })()
  await Promise.all(Array.from({ length: 6 }, visitor))
  isOver = true
  await cutting
  expect(answered).toBeGreaterThan(300 * FUZZ)
  expect(failed).toBeGreaterThan(0)
  expect(server.getStats().pendingResponses).toBe(0)
  const isQuiet = () => clients.every(one => one.isConnected()) && proxy.connectionCount === 3
  await eventually(() => isQuiet() && server.getStats().connections === 3, 'all clients to be back')
  for (const client of clients) await client.disconnect()
  expect(server.getStats()).toMatchObject({ connections: 0, activeSubdomains: 0 })
}, 60_000)

test('nothing is left when all is closed: the process ends by itself', async () => {
  const script = `
    import { TunnelClient, TunnelServer } from '${import.meta.dir}/../../src/index.ts'
    const server = new TunnelServer({ port: 0, host: '127.0.0.1' })
    await server.start()
    const client = new TunnelClient({ server: '127.0.0.1:' + server.port, subdomain: 'app', fetch: () => new Response('x') })
    await client.connect()
    const answer = await fetch('http://127.0.0.1:' + server.port, { headers: { Host: 'app.localhost' } })
    if (await answer.text() !== 'x') throw new Error('no answer')
    await client.disconnect()
    await server.stop()
    const alone = new TunnelClient({ server: '127.0.0.1:' + server.port, port: 1 })
    await alone.connect().then(() => process.exit(3), error => console.log(error.code))
    console.log('done', performance.now())
    process.on('exit', () => console.log('exit', performance.now()))
  `
  const child = Bun.spawn({ cmd: ['bun', '-e', script], stdout: 'pipe', stderr: 'pipe' })
  const output = await child.stdout.text()
  expect(await child.stderr.text()).toBe('')
  expect(await child.exited).toBe(0)
  const [, done = '0', exit = '99999'] = /^SERVER_UNREACHABLE\ndone (.*)\nexit (.*)\n$/.exec(output) ?? [
    output,
  ]
  expect(Number(exit) - Number(done)).toBeLessThan(1_500)
})

test('what goes wrong in a client never leaves it: no listener for error, no unhandled rejection', async () => {
  const script = `
    import { TunnelClient, TunnelServer } from '${import.meta.dir}/../../src/index.ts'
    const server = new TunnelServer({ port: 0, host: '127.0.0.1', limits: { drainTimeoutMs: 10 } })
    await server.start()
    const client = new TunnelClient({ server: '127.0.0.1:' + server.port, port: 1, maxBackoffMs: 10 })
    await client.connect()
    client.on('request', () => { throw new Error('thrown by a listener') })
    client.on('error', async () => { throw new Error('rejected by a listener') })
    const host = client.getSubdomain() + '.localhost'
    const answer = await fetch('http://127.0.0.1:' + server.port, { headers: { Host: host } })
    console.log(answer.status)
    await server.stop()
    await Bun.sleep(100)
    console.log(client.getState())
    await client.disconnect()
  `
  const child = Bun.spawn({ cmd: ['bun', '-e', script], stdout: 'pipe', stderr: 'pipe' })
  expect(await child.stdout.text()).toBe('502\nreconnecting\n')
  expect(await child.exited).toBe(0)
})
