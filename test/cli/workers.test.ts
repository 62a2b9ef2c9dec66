// `localtunnels server --workers`: processes that share the ports, killed, frozen and replaced.

import { afterEach, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { makeCertificate } from '../support/certificates.ts'
import { eventually } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { folder } from '../support/programs.ts'
import { within } from '../support/within.ts'
import { finish } from './bin.ts'
import { closeAll, closing, freeze, signal, Team } from './team.ts'

afterEach(closeAll)

const isLinux = process.platform === 'linux'

describe.if(isLinux)('workers', () => {
  test('a visitor at another worker gets what it would get at the one that has the client', async () => {
    const team = await Team.start(2)
    await team.client(1, 'shop', async request => new Response(`${request.method} ${await request.text()}`))
    // Its connection is accepted while the worker of the tunnel stands still, so the other one has it.
    const first = team.pid(1)
    await freeze(first)
    const socket = connect(team.port, '127.0.0.1')
    closing.push(() => socket.destroy())
    const body = 'x'.repeat(100_000)
    socket.write(
      `POST / HTTP/1.1\r\nHost: shop.localhost\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    // The other worker alone answers this one.
    expect((await ask(team.port, 'localhost', { path: '/health' })).body).toBe('OK')
    signal(first, 'SIGCONT')
    let text = ''
    const ended = Promise.withResolvers<void>()
    socket.on('data', bytes => (text += bytes))
    socket.on('close', () => ended.resolve())
    await within(ended.promise, 'the answer')
    expect(text).toStartWith('HTTP/1.1 200 ')
    expect(text).toEndWith(`POST ${body}`)
  })

  test('the totals of all come once, at the end', async () => {
    const team = await Team.start(2)
    for (const worker of [1, 2]) await team.client(worker, `app-${worker}`, async () => new Response('x'))
    for (const worker of [1, 2, 1]) await ask(team.port, `app-${worker}.localhost`)
    team.run.kill('SIGTERM')
    expect(await team.run.exited).toBe(0)
    const lines = team.run.stdout.trim().split('\n')
    const events = lines.map(line => JSON.parse(line) as { type: string; requests?: number })
    const ends = events.filter(({ type }) => type === 'draining' || type === 'totals')
    expect(ends.map(({ type }) => type)).toEqual(['draining', 'totals'])
    expect(events.at(-1)).toMatchObject({ type: 'totals', requests: 3, errors: 0 })
  })

  test('clients of one name at different workers all get their copies', async () => {
    const team = await Team.start(2)
    const got: string[] = []
    for (const worker of [1, 2]) {
      const app = async (request: Request) => {
        got.push(`${worker} ${await request.text()}`)
        return new Response('', { status: worker === 1 ? 500 : 201 })
      }
      await team.client(worker, 'hooks', app, { pool: { to: 'all' } })
    }
    for (let at = 0; at < 10; at++) {
      const answer = await ask(team.port, 'hooks.localhost', { method: 'POST', body: `${at}` })
      expect(answer.status).toBe(201)
      await eventually(() => got.length === 2, 'both copies')
      expect(got.splice(0).toSorted()).toEqual([`1 ${at}`, `2 ${at}`])
    }
  })

  test('what they share is for this user alone', async () => {
    const team = await Team.start(2)
    const { sockets } = team
    expect(sockets.map(path => path.replace(/.*\/|-\d+$/g, '')).toSorted()).toEqual([
      'directory',
      'worker-1',
      'worker-2',
    ])
    for (const path of sockets) expect(statSync(path).mode & 0o777).toBe(0o700)
    expect(statSync(join(sockets[0] ?? '', '..')).mode & 0o777).toBe(0o700)
    team.run.kill('SIGTERM')
    expect(await team.run.exited).toBe(0)
    expect(team.sockets).toEqual([])
  })

  test('a worker that is killed takes only its own connections with it, and starts again', async () => {
    const team = await Team.start(2)
    const bodies: ReadableStreamDefaultController<Uint8Array>[] = []
    await team.client(
      1,
      'one',
      () => new Response(new ReadableStream({ start: body => void bodies.push(body) })),
    )
    const client = await team.client(2, 'two', () => new Response('two'))
    let connected = 0
    client.on('connected', () => connected++)
    const [first, second] = [team.pid(1), team.pid(2)]
    // A visitor of the first worker, too.
    await freeze(second)
    const answer = fetch(`${team.url}/`, { headers: { host: 'one.localhost' } })
    await eventually(() => bodies.length === 1, 'the request')
    bodies[0]?.enqueue(Buffer.from('before '))
    const body = (await answer).text()
    signal(second, 'SIGKILL')
    await team.run.printed(/Worker 2 ended with exit code 137, and starts again in 0\.1 s/)
    await eventually(() => ![undefined, second].includes(team.workers().get(2)), 'another worker')
    expect(team.pid(1)).toBe(first)
    bodies[0]?.enqueue(Buffer.from('after'))
    bodies[0]?.close()
    expect(await body).toBe('before after')
    // Its client has proved its name to a worker that lives.
    await eventually(() => connected === 1, 'the client to be back')
    expect((await ask(team.port, 'two.localhost')).body).toBe('two')
  })

  test('all read their file again', async () => {
    await using dir = await folder('workers-file')
    const file = `${dir.path}/server.toml`
    await Bun.write(file, 'domains = ["localhost"]\n')
    const team = await Team.start(2, '--config', file)
    await Bun.write(file, 'domains = ["localhost", "other.localhost"]\n')
    team.run.kill('SIGHUP')
    await eventually(() => (team.run.stdout.match(/"code":"RELOADED"/g)?.length ?? 0) >= 2, 'both reloads')
  })

  test('when their parent is killed they end', async () => {
    const team = await Team.start(2)
    const pids = [...team.workers().values()]
    team.run.kill('SIGKILL')
    await eventually(() => pids.every(pid => !signal(pid, 0)), 'the workers to end')
  })

  testWith(['wrk'], 'SIGUSR2 replaces all of them, without a failed request', async () => {
    const team = await Team.start(2, '--log-rate', '1')
    const client = await team.client(1, 'shop', () => new Response('hello'))
    let connected = 0
    client.on('connected', () => connected++)
    const before = [...team.workers().values()]
    const load = Bun.spawn(
      ['wrk', '-t1', '-c10', '-d3s', '--timeout', '20s', '-H', 'Host: shop.localhost', `${team.url}/`],
      { stdout: 'pipe', stderr: 'inherit' },
    )
    await team.run.printed(/"type":"(?:more|response)"/)
    team.run.kill('SIGUSR2')
    const pid = Number(await team.run.printed(/Process (\d+) serves from now on/))
    closing.push(() => signal(pid, 'SIGKILL'))
    await eventually(() => connected === 1, 'the client to come back')
    const counted = await load.stdout.text()
    expect(counted).toMatch(/\d+ requests in/)
    expect(counted).not.toMatch(/Socket errors|Non-2xx/)
    await eventually(() => before.every(one => !signal(one, 0)), 'the old workers to leave')
    signal(pid, 'SIGTERM')
    await eventually(() => team.workers().size === 0, 'the new workers to leave')
  })

  test('certificates of visitors are not for workers: the one that a visitor comes to may not know the tunnel', async () => {
    const own = await makeCertificate(['localhost', '*.localhost'])
    await using dir = await folder('certificate')
    const [cert, key] = [join(dir.path, 'cert.pem'), join(dir.path, 'key.pem')]
    await Bun.write(cert, own.cert)
    await Bun.write(key, own.key)
    const team = await Team.start(2, '--tls-cert', cert, '--tls-key', key)
    const guard = { certificate: { ca: own.cert } }
    const server = `https://localhost:${team.port}`
    const client = new TunnelClient({ server, ca: own.cert, fetch: () => new Response(), guard })
    expect(await client.connect().catch((error: unknown) => error)).toMatchObject({
      code: 'GUARD_UNAVAILABLE',
    })
  })

  test('what cannot be is said', async () => {
    for (const [flags, says] of [
      [['--workers', '0'], 'error OPTION_INVALID: --workers "0" is neither auto nor a number from 1 to 64.'],
      [['--workers', 'many'], 'error OPTION_INVALID: --workers "many"'],
      [
        ['--workers', '2', '--cluster', 'redis://127.0.0.1:1'],
        'error OPTION_INVALID: cluster is for a server with one worker',
      ],
      [
        ['--workers', '2', '--host', '192.0.2.1', '--token', 'x'],
        'error PORT_IN_USE: Port 8080 on 192.0.2.1',
      ],
      [['--workers', '2', '--host', '0.0.0.0', '--port', '0'], 'error OPEN_SERVER: '],
    ] as const)
      expect((await finish(['server', ...flags])).stderr).toContain(says)
  })
})
