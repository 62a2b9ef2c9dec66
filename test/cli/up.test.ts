// `localtunnels up` and `localtunnels server --config`, run for real.

import { describe, expect, test } from 'bun:test'
import { mkdir, rename, rm, symlink } from 'node:fs/promises'
import { connectTunnel, type TunnelServer } from '../../src/index.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { eventually } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'
import { finish, type Running, start } from './bin.ts'

const { open, defer } = closedAfterEach()

/** An app that says its name. */
function app(name: string): number {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(name) })
  defer(() => server.stop(true))
  return server.port ?? 0
}

/** One that also begins an answer at `/held`, and completes it when it is told to. */
function heldApp(name: string): { readonly port: number; finish(): void } {
  let finish = () => {}
  const held = new ReadableStream<string>({
    start(controller) {
      controller.enqueue('begun, ')
      finish = () => {
        controller.enqueue('done')
        controller.close()
      }
    },
  })
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: request => new Response(new URL(request.url).pathname === '/held' ? held : name),
  })
  defer(() => server.stop(true))
  return { port: server.port ?? 0, finish: () => finish() }
}

/** A port where nothing listens. */
function deadPort(): number {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const { port = 0 } = server
  void server.stop(true)
  return port
}

interface Setting {
  readonly server: TunnelServer
  readonly files: ConfigFiles
  /** Writes the file: the server, and a line for each service. */
  readonly write: (...services: readonly string[]) => Promise<string>
  /** What visitors of a name get. */
  readonly visit: (name: string) => Promise<string>
}

async function setting(options: Parameters<typeof startServer>[0] = {}): Promise<Setting> {
  const server = open(await startServer(options))
  const files = open(await ConfigFiles.make())
  return {
    server,
    files,
    write: (...services) =>
      files.write(
        'localtunnels.toml',
        [`server = "http://127.0.0.1:${server.port}"`, '[services]', ...services].join('\n'),
      ),
    async visit(name) {
      const answer = await fetch(`http://127.0.0.1:${server.port}/`, {
        headers: { host: `${name}.localhost` },
      })
      return answer.ok ? answer.text() : (answer.headers.get('x-localtunnels-error') ?? String(answer.status))
    },
  }
}

const up = (path: string, ...more: readonly string[]): Running =>
  open(start(['up', '--config', path, ...more]))
/** The line that ends each change. */
const inForce = (run: Running, services: number) => run.printed(new RegExp(`toml: ${services} services?\\n`))
/** What was printed so far is forgotten. */
const forget = (run: Running) => {
  run.stdout = ''
  run.stderr = ''
}

describe('up', () => {
  test('lines of requests mask the secrets of a query that the file names', async () => {
    const { files, server } = await setting()
    const path = await files.write(
      'localtunnels.toml',
      `server = "http://127.0.0.1:${server.port}"\ninspect = { secrets = ["Token"] }\nservices = { one = { port = ${app('one')} } }`,
    )
    const run = up(path, '--json')
    await run.printed(/"type":"service"/)
    const headers = { host: 'one.localhost' }
    await fetch(`http://127.0.0.1:${server.port}/a?token=qqq&b=1&password=qqq`, { headers })
    for (const type of ['request', 'response'])
      expect(await run.printed(new RegExp(`"type":"${type}".*"path":"([^"]*)"`))).toBe(
        '/a?token=••••••&b=1&password=••••••',
      )
  })

  test('runs all services that it can, a line for each, and says what is wrong with the others', async () => {
    const { write, visit, server } = await setting({
      tcpPorts: '28000-28099',
      udpPorts: '28100-28199',
      reservedNames: ['ours'],
    })
    const one = app('one')
    const dead = deadPort()
    const path = await write(
      `one = { port = ${one} }`,
      `other = { url = "http://127.0.0.1:${one}", subdomain = "two" }`,
      `ours = { port = ${one} }`,
      `raw = { kind = "tcp", port = ${one}, host = "127.0.0.1" }`,
      `dns = { kind = "udp", port = ${dead}, idle-timeout = "1s" }`,
      `outside = { kind = "tcp", port = ${one}, remote-port = 1 }`,
      `asleep = { port = ${dead}, host = "127.0.0.1" }`,
    )
    const run = up(path)
    await run.printed(/toml: 5 of 7 services\n/)
    await run.printed(/outside: NOT_ALLOWED: /)
    await run.printed(/asleep: nothing responds yet: /)
    await run.printed(/asleep {2}http:/)
    const lines = Object.fromEntries(
      run.stdout
        .trim()
        .split('\n')
        .map(line => line.split('  ')),
    )
    expect(lines).toEqual({
      one: `http://one.localhost:${server.port}`,
      other: `http://two.localhost:${server.port}`,
      raw: expect.stringMatching(/^tcp:\/\/localhost:280\d\d$/),
      dns: expect.stringMatching(/^udp:\/\/localhost:281\d\d$/),
      asleep: `http://asleep.localhost:${server.port}`,
    })
    expect(run.stderr).toContain('ours: NAME_RESERVED: ')
    expect(run.stderr).toContain('outside: NOT_ALLOWED: ')
    expect(await visit('one')).toBe('one')
    expect(await visit('two')).toBe('one')
    // The end waits for connections that are open, as one that is kept alive would be.
    const close = { headers: { connection: 'close' } }
    expect(await (await fetch(lines.raw!.replace('tcp', 'http'), close)).text()).toBe('one')
    await run.printed(/ raw {2}127\.0\.0\.1:\d+ .* in .* out\n/)
    expect(await visit('asleep')).toBe('ORIGIN_REFUSED')
    expect(await visit('ours')).not.toBe('one')
    await run.printed(/one +200 {2}GET .* \/\n/)
    run.kill('SIGINT')
    expect(await run.exited).toBe(0)
    expect(run.stderr).toMatch(/\d requests, 1 connection, 1 error, /)
  })

  test('connections to a TCP service are told of by its name, and it is told who connects', async () => {
    const { write } = await setting({ tcpPorts: '28100-28199' })
    using service = new RawOrigin()
    const shell = `shell = { kind = "tcp", port = ${service.port}, host = "127.0.0.1", proxy-protocol = "v1" }`
    const run = up(await write(shell), '--json')
    const { url } = JSON.parse(await run.printed(/.*"type":"service".*/))
    await run.printed(/"type":"configured"/)
    const visitor = await rawDial(Number(new URL(url).port))
    await visitor.send('hello')
    const begun = JSON.parse(await run.printed(/.*"type":"visitorConnected".*/))
    expect(begun).toMatchObject({ service: 'shell', remoteAddress: '127.0.0.1' })
    const told = `PROXY TCP4 127.0.0.1 127.0.0.1 ${begun.remotePort} ${new URL(url).port}\r\nhello`
    await eventually(() => service.connections.some(one => one.text === told), 'a PROXY header')
    // Given back while a visitor is connected: it may finish, and the event still says whose it was.
    await write(`web = { port = ${app('web')} }`)
    await run.printed(/"type":"removed"/)
    visitor.socket.end()
    for (const one of service.connections) one.socket.end()
    const end = JSON.parse(await run.printed(/.*"type":"visitorDisconnected".*/))
    expect(end).toMatchObject({ id: begun.id, service: 'shell', bytesIn: 5, bytesOut: 0 })
    await run.printed(/"configured"[\s\S]*"configured"/)
    run.kill('SIGINT')
    expect(await run.exited).toBe(0)
    expect(run.stdout).toMatch(/"type":"totals",.*"requests":0,"connections":1,/)
  })

  test('a range of ports is a service for each of them', async () => {
    const { write } = await setting({ udpPorts: '28200-28299' })
    const path = await write('game = { kind = "udp", port = "27015-27017", remote-port = "28215-28217" }')
    const run = up(path)
    await inForce(run, 3)
    for (const port of [27015, 27016, 27017])
      expect(run.stdout + run.stderr).toMatch(
        new RegExp(`game:${port} .*udp://localhost:${port + 1200} .*localhost:${port}`),
      )
    forget(run)
    await write('game = { kind = "udp", port = "27015-27016", remote-port = "28215-28216" }')
    await inForce(run, 2)
    expect(run.stdout + run.stderr).toMatch(/game:27017.*removed|removed.*game:27017/)
    expect(run.stdout + run.stderr).not.toContain('game:27015')
  })

  test('paths and hosts below the name, as the file says', async () => {
    const { write, visit, server } = await setting()
    const [rest, api] = [app('rest'), app('api')]
    const run = up(await write(`web = { port = ${rest}, wildcard = true, routes = { "/api" = ${api} } }`))
    await inForce(run, 1)
    expect(await visit('web')).toBe('rest')
    expect(await visit('tenant.web')).toBe('rest')
    const headers = { host: 'web.localhost' }
    expect(await (await fetch(`http://127.0.0.1:${server.port}/api/x`, { headers })).text()).toBe('api')
    await run.printed(/web +200 {2}GET .* tenant\.web\.localhost\/\n/)
  })

  test('loses no request of a service that stays, while others come, go and change', async () => {
    const { write, visit, server } = await setting()
    const held = heldApp('first')
    const [first, second] = [held.port, app('second')]
    const run = up(
      await write(
        `stays = { port = ${first} }`,
        `goes = { port = ${first} }`,
        `changes = { port = ${first} }`,
      ),
    )
    await inForce(run, 3)
    const long = await fetch(`http://127.0.0.1:${server.port}/held`, { headers: { host: 'stays.localhost' } })
    let isLoaded = true
    const answers = new Map<string, number>()
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (isLoaded) {
          const answer = await visit('stays')
          answers.set(answer, (answers.get(answer) ?? 0) + 1)
        }
      }),
    )
    const registered: string[] = []
    server.on('connection', ({ subdomain }) => registered.push(subdomain))
    for (let round = 0; round < 5; round++) {
      forget(run)
      await write(
        `stays = { port = ${first} }`,
        `changes = { port = ${second} }`,
        `comes = { port = ${second} }`,
      )
      await inForce(run, 3)
      expect(run.stderr).toContain('goes: removed\n')
      expect(await Promise.all(['goes', 'changes', 'comes'].map(visit))).toEqual([
        'TUNNEL_NOT_FOUND',
        'second',
        'second',
      ])
      forget(run)
      // Equal, but written otherwise.
      await write(
        `changes = { port = ${first} }`,
        `goes = { port = ${first} }`,
        `stays = { kind = "http", "port" = "${first}" }`,
      )
      await inForce(run, 3)
      expect(await Promise.all(['goes', 'changes', 'comes'].map(visit))).toEqual([
        'first',
        'first',
        'TUNNEL_NOT_FOUND',
      ])
    }
    isLoaded = false
    await load
    held.finish()
    expect(await long.text()).toBe('begun, done')
    expect([...answers.keys()]).toEqual(['first'])
    expect(answers.get('first')).toBeGreaterThan(100)
    expect(registered.filter(name => name === 'stays')).toEqual([])
  }, 60_000)

  test('two services may change names in one step', async () => {
    const { write, visit } = await setting()
    const [first, second] = [app('first'), app('second')]
    const run = up(
      await write(`a = { port = ${first}, subdomain = "x" }`, `b = { port = ${second}, subdomain = "y" }`),
    )
    await inForce(run, 2)
    expect([await visit('x'), await visit('y')]).toEqual(['first', 'second'])
    forget(run)
    await write(`a = { port = ${first}, subdomain = "y" }`, `b = { port = ${second}, subdomain = "x" }`)
    await inForce(run, 2)
    expect([await visit('x'), await visit('y')]).toEqual(['second', 'first'])
    expect(run.stderr).not.toContain('is taken')
  })

  test('tells the faults of a new version, and goes on as before until it is mended', async () => {
    const { write, visit, files } = await setting()
    const port = app('app')
    const path = await write(`web = { port = ${port} }`)
    const run = up(path)
    await inForce(run, 1)
    await write(`web = { prot = ${port} }`, 'x = { port = 0 }')
    await run.printed(/previous services keep running/)
    expect(run.stderr).toContain(`${path}:3:9 unknown key "prot" in services.web: did you mean "port"?\n`)
    expect(run.stderr).toContain(
      `${path}:4:7 services.x.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not 0\n`,
    )
    // Where this installation has the page.
    expect(run.stderr).toMatch(/3 faults\. See \/\S+\/docs\/configuration\.md /)
    expect(await visit('web')).toBe('app')
    forget(run)
    await rm(path)
    await run.printed(/previous services keep running/)
    expect(run.stderr).toContain(`${path} cannot be read: there is no such file\n`)
    expect(await visit('web')).toBe('app')
    forget(run)
    await files.write(
      'new.toml',
      await Bun.file(await write(`web = { port = ${port} }`, `more = { port = ${port} }`)).text(),
    )
    await inForce(run, 2)
    expect(await visit('more')).toBe('app')
  })

  test('notices files that are replaced, and links that lead elsewhere', async () => {
    const { write, visit, files } = await setting()
    const port = app('app')
    const path = await write(`web = { port = ${port} }`)
    const text = await Bun.file(path).text()
    // As orchestrators mount files: a link to a link to a folder, of which the latter is replaced.
    await mkdir(files.path('v1'))
    await mkdir(files.path('v2'))
    await files.write('v1/localtunnels.toml', text)
    await files.write('v2/localtunnels.toml', text.replace('web', 'second'))
    await rm(path)
    await symlink('v1', files.path('current'))
    await symlink('current/localtunnels.toml', path)
    const run = up(path)
    await inForce(run, 1)
    expect(await visit('web')).toBe('app')
    forget(run)
    await symlink('v2', files.path('next'))
    await rename(files.path('next'), files.path('current'))
    await inForce(run, 1)
    expect(run.stderr).toContain('web: removed\n')
    expect(await visit('second')).toBe('app')
    forget(run)
    // Where the link leads now.
    await files.write('v2/localtunnels.toml', text.replace('web', 'edited'))
    await inForce(run, 1)
    expect(await visit('edited')).toBe('app')
    forget(run)
    // As editors save.
    await files.write('.localtunnels.toml.swp', text.replace('web', 'third'))
    await rename(files.path('.localtunnels.toml.swp'), path)
    await inForce(run, 1)
    expect(await visit('third')).toBe('app')
  })

  test('with another connection makes all anew, and gives nothing back before that one is there', async () => {
    const { write, visit, files, server } = await setting({ tokens: ['old', 'new'] })
    const port = app('app')
    const token = async (name: string, to = server.port) => {
      const text = await Bun.file(await write(`web = { port = ${port} }`)).text()
      const changed = text.replace(`:${server.port}"`, `:${to}"`)
      return files.write('localtunnels.toml', `token = "${name}"\n${changed}`)
    }
    const run = up(await token('old'))
    await inForce(run, 1)
    forget(run)
    await token('new')
    await inForce(run, 1)
    expect(await visit('web')).toBe('app')
    const ends: unknown[] = []
    server.on('disconnection', event => ends.push(event))
    for (const [name, to, reason] of [
      ['wrong', server.port, /does not accept this token.* The previous services keep running/],
      ['new', deadPort(), /cannot be reached.* The previous services keep running/],
    ] as const) {
      forget(run)
      await token(name, to)
      await run.printed(reason)
      expect(await visit('web')).toBe('app')
    }
    expect(ends).toEqual([])
  })

  test('a token for one client may be exchanged for another one', async () => {
    const tokens = ['old', 'new'].map(token => ({ token, maxClients: 1 }))
    const { write, visit, files } = await setting({ tokens })
    const text = await Bun.file(await write(`web = { port = ${app('app')} }`)).text()
    const run = up(await files.write('localtunnels.toml', `token = "old"\n${text}`))
    await inForce(run, 1)
    for (const line of ['token = "old"\nwire = "streams"', 'token = "new"']) {
      forget(run)
      await files.write('localtunnels.toml', `${line}\n${text}`)
      await inForce(run, 1)
      expect(await visit('web')).toBe('app')
    }
  })

  test('comes back with the server, under the same names', async () => {
    const { write, visit, server } = await setting()
    const port = app('app')
    const run = up(await write(`one = { port = ${port} }`, `two = { port = ${port} }`))
    await inForce(run, 2)
    const { port: serverPort } = server
    await server.stop()
    await run.printed(/connection lost, reconnecting/)
    open(await startServer({ port: serverPort }))
    await run.printed(/connected again/)
    expect([await visit('one'), await visit('two')]).toEqual(['app', 'app'])
    expect(run.stdout.trim().split('\n').length).toBe(2)
  })

  test('follows the file while the server is away, also to another server', async () => {
    const { write, server, files } = await setting()
    const port = app('app')
    const run = up(await write(`one = { port = ${port} }`, `two = { port = ${port} }`))
    await inForce(run, 2)
    const away = server.port
    await server.stop()
    await run.printed(/connection lost, reconnecting/)
    // Told once, however many tries there are.
    await run.printed(/SERVER_UNREACHABLE/)
    forget(run)
    await write(`one = { port = ${port} }`, `three = { port = ${port} }`)
    // Read, and waiting for a server that does not come.
    await run.printed(/two: removed/)
    const other = open(await startServer())
    const text = await Bun.file(files.path('localtunnels.toml')).text()
    await files.write(
      'localtunnels.toml',
      text.replace(String(away), String(other.port)).replace('three', 'four'),
    )
    await inForce(run, 2)
    for (const name of ['one', 'four']) {
      const answer = await fetch(`http://127.0.0.1:${other.port}/`, {
        headers: { host: `${name}.localhost` },
      })
      expect(await answer.text()).toBe('app')
    }
  })

  test('--json tells all of it, with the names of services', async () => {
    const { write, visit, server } = await setting({ reservedNames: ['ours'] })
    const port = app('app')
    const path = await write(`web = { port = ${port} }`, `ours = { port = ${port} }`)
    const run = up(path, '--json')
    await run.printed(/"configured"/)
    await visit('web')
    await run.printed(/"response"/)
    await write('web = 1')
    await run.printed(/"CONFIG_KEPT"/)
    await write(`other = { port = ${port} }`)
    await run.printed(/"configured"[\s\S]*"configured"/)
    run.kill('SIGINT')
    await run.exited
    const events = run.stdout
      .trim()
      .split('\n')
      // Lines of the program under test.
      .map(line => JSON.parse(line) as Record<string, unknown>)
    const of = (type: string) => events.filter(event => event.type === type)
    const url = (name: string) => `http://${name}.localhost:${server.port}`
    expect(of('service')).toMatchObject([
      { service: 'web', kind: 'http', url: url('web'), origin: `http://localhost:${port}` },
      { service: 'other', kind: 'http', url: url('other') },
    ])
    expect(of('error')).toMatchObject([{ service: 'ours', code: 'NAME_RESERVED' }])
    expect(of('request')).toMatchObject([{ service: 'web', method: 'GET', path: '/' }])
    expect(of('response')).toMatchObject([{ service: 'web', status: 200 }])
    expect(of('configError')).toMatchObject([
      { file: path, line: 3, column: 1, message: 'services.web must be a table, not a number' },
    ])
    expect(of('removed')).toMatchObject([{ service: 'web' }])
    expect(of('configured')).toMatchObject([{ file: path, services: 1 }, { services: 1 }])
    expect(events.at(-1)).toMatchObject({ type: 'totals', requests: 1 })
  })

  test('without a server there is one for this machine', async () => {
    const port = app('app')
    const files = open(await ConfigFiles.make())
    await files.write(
      'localtunnels.yaml',
      // What is in this process needs no way out: nothing is at this proxy.
      `{proxy: "http://127.0.0.1:1", services: {web: {port: ${port}}, raw: {kind: tcp, port: ${port}}}}`,
    )
    const run = open(start(['up'], {}, files.folder))
    await run.printed(/localtunnels\.yaml: 2 services/)
    expect(run.stderr).toContain('Only this machine can open these.')
    const [, url = ''] = /^web {2}(\S+)$/m.exec(run.stdout) ?? []
    const { host, port: serverPort } = new URL(url)
    const answer = await fetch(`http://127.0.0.1:${serverPort}/`, { headers: { host } })
    expect(await answer.text()).toBe('app')
  })

  test('takes routes and the hosts below a name', async () => {
    const { write, server } = await setting()
    const [whole, api] = [app('whole'), app('api')]
    const paths = Bun.serve({ port: 0, fetch: ({ url }) => new Response(new URL(url).pathname) })
    defer(() => paths.stop(true))
    const bare = `"/bare" = "localhost:${paths.port},strip-prefix=/bare,add-prefix=/v2"`
    const routes = `routes = { "/api" = ${api}, ${bare} }`
    const run = up(await write(`web = { port = ${whole}, wildcard = true, ${routes} }`))
    await inForce(run, 1)
    const visit = async (host: string, path: string) =>
      (await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { host } })).text()
    expect(await visit('web.localhost', '/api/x')).toBe('api')
    expect(await visit('web.localhost', '/bare/x')).toBe('/v2/x')
    expect(await visit('a.b.web.localhost', '/x')).toBe('whole')
    await run.printed(/web +200 {2}GET .* a\.b\.web\.localhost\/x\n/)
  })

  test('takes pools and health checks', async () => {
    const { write, visit, server } = await setting()
    const run = up(await write(`web = { port = ${app('one')}, pool = true, health = { interval = "50ms" } }`))
    await inForce(run, 1)
    await using other = await connectTunnel({
      server: `127.0.0.1:${server.port}`,
      subdomain: 'web',
      pool: true,
      fetch: () => new Response('two'),
    })
    expect([await visit('web'), await visit('web')].toSorted()).toEqual(['one', 'two'])
    expect(other.getSubdomain()).toBe('web')
  })

  test('takes pools where all get a copy, and filters', async () => {
    const { write, visit, server } = await setting()
    const pool = `pool = { to = "all", response = "bert", label = "anna" }`
    const run = up(await write(`web = { port = ${app('one')}, ${pool}, filter = "POST" }`))
    await inForce(run, 1)
    expect(await visit('web')).toBe('FILTERED_OUT')
    await using _bert = await connectTunnel({
      server: `127.0.0.1:${server.port}`,
      subdomain: 'web',
      pool: { to: 'all', label: 'bert' },
      fetch: () => new Response('two'),
    })
    expect(await visit('web')).toBe('two')
  })

  test('serves folders, relative to the file', async () => {
    const { write, visit, files, server } = await setting()
    await mkdir(files.path('dist'))
    await files.write('dist/index.html', 'a page')
    const run = up(
      await write('pages = { folder = "dist" }', 'below = { folder = "dist", strip-prefix = "/app" }'),
    )
    await inForce(run, 2)
    expect(await visit('pages')).toBe('a page')
    const below = await fetch(`http://127.0.0.1:${server.port}/app/`, {
      headers: { host: 'below.localhost' },
    })
    expect(await below.text()).toBe('a page')
  })

  test('ends with one line for each reason when it cannot begin', async () => {
    const { write, files } = await setting({ reservedNames: ['ours', 'mine'] })
    const faulty = await finish(['up', '--config', await write('web = { port = 0, x = 1 }')])
    expect(
      faulty.stderr
        .replaceAll(/^\d\d:\d\d:\d\d {2}/gm, '')
        .replaceAll(`${files.folder}/`, '')
        .split('\n'),
    ).toEqual([
      'localtunnels.toml:3:9 services.web.port must be a port from 1 to 65535, or a range of at most 256 such as "27015-27030", not 0',
      'localtunnels.toml:3:19 unknown key "x" in services.web',
      expect.stringMatching(/^error CONFIG_INVALID: localtunnels\.toml has 2 faults\. /),
      '',
    ])
    const refused = await finish([
      'up',
      '--config',
      await write('ours = { port = 1 }', 'mine = { port = 1 }'),
    ])
    // Each learns its own reason; the first one's is also that of the end.
    expect(refused.stderr).toMatch(
      /^\S+ {2}mine: NAME_RESERVED: [^\n]*\nerror NAME_RESERVED: ours: The name "ours" is reserved [^\n]*\n$/,
    )
    expect([faulty, refused].map(({ exitCode }) => exitCode)).toEqual([2, 4])
  })
})

describe('server --config', () => {
  const FILE = 'port = 0\nhost = "127.0.0.1"\ndomains = "a.localhost"\ntokens = "${SECRET}"\n'

  test('serves as the file says; flags win', async () => {
    const files = open(await ConfigFiles.make())
    const path = await files.write('server.toml', FILE)
    const run = open(start(['server', '--config', path, '--domain', 'b.localhost'], { SECRET: 's' }))
    const url = await run.printed(/^(http:\/\/b\.localhost:\d+)\n/m)
    const port = new URL(url).port
    const refused = await finish(['3000', '--server', `127.0.0.1:${port}`])
    expect(refused.stderr).toContain('error TOKEN_REFUSED')
    const client = open(
      start(['3000', '--server', `127.0.0.1:${port}`, '--token', 's', '--subdomain', 'web']),
    )
    expect(await client.printed(/^(http:\S+)\n/m)).toBe(`http://web.b.localhost:${port}`)
  })

  test('tells faults, and what becomes of changes; SIGHUP does not end it', async () => {
    const files = open(await ConfigFiles.make())
    const path = await files.write('server.toml', FILE)
    const without = await finish(['server', '--config', path])
    expect(without.stderr).toContain(
      `${path}:4:10 tokens: the variable SECRET is not set: set it, or write \${SECRET:-default}\n`,
    )
    expect(without.exitCode).toBe(2)
    const run = open(start(['server', '--config', path], { SECRET: 's' }))
    await run.printed(/listening on port/)
    await files.write('server.toml', `${FILE}limts = 1\n`)
    await run.printed(/The server continues with its previous settings/)
    expect(run.stderr).toContain(`${path}:5:1 unknown key "limts": did you mean "limits"?\n`)
    await files.write('server.toml', FILE)
    const isTaken = /is in force/
    await run.printed(isTaken)
    forget(run)
    run.kill('SIGHUP')
    await run.printed(isTaken)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
  })

  test('without tokens and on every address: only with open = true, also when the file changes', async () => {
    const files = open(await ConfigFiles.make())
    const path = await files.write('server.toml', 'port = 0\n')
    const refused = await finish(['server', '--config', path])
    expect(refused.stderr).toContain('error OPEN_SERVER')
    expect(refused.exitCode).toBe(2)
    await files.write('server.toml', 'port = 0\ntokens = "one"\n')
    const run = open(start(['server', '--config', path]))
    const url = await run.printed(/^(http:\S+)\n/m)
    await files.write('server.toml', 'port = 0\n')
    await run.printed(/without tokens .* The server continues with its previous settings/)
    const stranger = await finish(['3000', '--server', url])
    expect(stranger.stderr).toContain('error TOKEN_REFUSED')
    await files.write('server.toml', 'port = 0\nopen = true\n')
    await run.printed(/Warning: A server without tokens/)
    await run.printed(/is in force/)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
  })
})
