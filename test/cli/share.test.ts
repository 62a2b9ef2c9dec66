// The real bin sharing a real app: in a pipe, on a terminal, through outages, to the last line.

import { describe, expect, test } from 'bun:test'
import { TunnelServer } from '../../src/tunnel-server.ts'
import { makeCertificate } from '../support/certificates.ts'
import { closedAfterEach } from '../support/opened.ts'
import { OutboundProxy } from '../support/outbound-proxy.ts'
import { freePort } from '../support/ports.ts'
import { Site } from '../support/site.ts'
import { finish, start, startOnTerminal } from './bin.ts'

type App = Bun.Server<undefined>
const { open, defer } = closedAfterEach()

function app(answer: (request: Request) => Response | Promise<Response>, port = 0): App {
  const server = Bun.serve({ port, hostname: '127.0.0.1', fetch: answer })
  defer(() => server.stop(true))
  return server
}

/** A visitor's request. Resolvers need not know .localhost: the address is dialled, the name goes into Host. */
function visit(url: string, path = '/', init: RequestInit = {}): Promise<Response> {
  const { host, port } = new URL(url)
  return fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { host, connection: 'close' } })
}

async function server(port = 0, tokens: readonly string[] = []): Promise<TunnelServer> {
  const one = open(new TunnelServer({ port, host: '127.0.0.1', tokens, limits: { drainTimeoutMs: 10 } }))
  await one.start()
  return one
}

const URL_LINE = /^(http:\/\/\S+)\n/m
const CTRL_C = '\x03'

describe('an app in the other scheme', () => {
  test('a port that speaks TLS, and an https:// URL that does not: the line says what to use', async () => {
    const certificate = await makeCertificate(['localhost'])
    const options = { port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') }
    const secure = Bun.serve({ ...options, tls: certificate })
    defer(() => secure.stop(true))
    const plain = app(() => new Response('hello'))
    for (const [target, hint] of [
      [
        `127.0.0.1:${secure.port}`,
        `The app on port ${secure.port} speaks TLS: use https://127.0.0.1:${secure.port}`,
      ],
      [
        `https://127.0.0.1:${plain.port}`,
        `The app on port ${plain.port} does not speak TLS: use http://127.0.0.1:${plain.port}`,
      ],
    ] as const) {
      const run = open(start([target]))
      const answer = await visit(await run.printed(URL_LINE), '/', { headers: { accept: 'text/html' } })
      expect(answer.status).toBe(502)
      expect(await answer.text()).toMatch(/expects https on this port|does not use TLS on this port/)
      await run.printed(new RegExp(hint.replaceAll('.', '\\.')))
    }
  })
})

describe('through a proxy', () => {
  test('--proxy leads to the server; an unreachable one is one line and exit code 3', async () => {
    const { port } = app(() => new Response('hello'))
    const { port: serverPort } = await server()
    using proxy = await OutboundProxy.start({ kind: 'socks5' })
    const args = [String(port), '--server', `127.0.0.1:${serverPort}`]
    const run = open(start([...args, '--proxy', proxy.url()]))
    const url = await run.printed(URL_LINE)
    expect(await (await visit(url)).text()).toBe('hello')
    expect(proxy.targets).toContain(`127.0.0.1:${serverPort} IPv4`)
    const { stderr, exitCode } = await finish(args, { TUNNEL_PROXY: 'http://anna:hidden@127.0.0.1:1' })
    expect(stderr).toMatch(/^error PROXY_FAILED: The proxy http:\/\/127\.0\.0\.1:1 cannot be reached: .*\n$/)
    expect(stderr).not.toContain('hidden')
    expect(exitCode).toBe(3)
  })

  test('a server in this process is reached without', async () => {
    const { port } = app(() => new Response('hello'))
    const run = open(start([String(port)], { TUNNEL_PROXY: 'http://127.0.0.1:1' }))
    expect(await (await visit(await run.printed(URL_LINE))).text()).toBe('hello')
  })
})

describe('in a pipe', () => {
  test('stdout is the URL alone, which answers; stderr has the requests and the totals', async () => {
    const { port } = app(() => new Response('hello'))
    const run = open(start([String(port), '--subdomain', 'calm-otter']))
    const url = await run.printed(URL_LINE)
    expect(url).toMatch(/^http:\/\/calm-otter\.localhost:\d+$/)
    expect(await (await visit(url, '/a%20b?c')).text()).toBe('hello')
    await run.printed(/200 {2}GET .* B +\/a%20b\?c\n/)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stdout).toBe(`${url}\n`)
    expect(run.stderr).toMatch(/1 request, 0 errors, .*\n$/)
  })

  test('--json tells the same as events', async () => {
    const { port } = app(() => new Response('hello'))
    const run = open(start([String(port), '--json']))
    const ready = JSON.parse(await run.printed(/.*"type":"ready".*/))
    expect(ready).toMatchObject({ origin: `http://localhost:${port}`, wire: 'streams', isEmbedded: true })
    await visit(ready.url, '/x', { method: 'POST', body: 'y' })
    const response = JSON.parse(await run.printed(/.*"type":"response".*/))
    expect(Object.keys(response)).toEqual('type time id method path status durationMs bytes'.split(' '))
    expect(response).toMatchObject({ method: 'POST', path: '/x', status: 200 })
    run.kill('SIGINT')
    expect(await run.exited).toBe(0)
    const types = run.stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).type)
    expect(types.filter(type => type !== 'origin')).toEqual(
      'connecting connected ready request response draining totals'.split(' '),
    )
    expect(run.stderr).toBe('')
  })

  test('--serve shares a folder, and says so; --spa answers for its pages', async () => {
    await using site = await Site.of({ 'index.html': 'app', 'notes.txt': 'notes' })
    const run = open(start(['--serve', site.folder, '--spa', '--json']))
    const ready = JSON.parse(await run.printed(/.*"type":"ready".*/))
    expect(ready.origin).toBe(`${site.folder}/`)
    expect(await (await visit(ready.url, '/notes.txt')).text()).toBe('notes')
    expect((await visit(ready.url, '/users/42')).status).toBe(404)
    const { host, port } = new URL(ready.url)
    const page = await fetch(`http://127.0.0.1:${port}/users/42`, { headers: { host, accept: 'text/html' } })
    expect([page.status, await page.text()]).toEqual([200, 'app'])
    expect(run.stdout).not.toContain('"isUp":false')
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
  })

  test('TUNNEL_SERVE names the folder, and gives way to a port that is typed', async () => {
    await using site = await Site.of({ 'index.html': 'page' })
    const { port } = app(() => new Response('app'))
    const env = { TUNNEL_SERVE: site.folder, TUNNEL_SPA: '0' }
    const [folder, typed] = [open(start([], env)), open(start([String(port)], env))]
    expect(await (await visit(await folder.printed(URL_LINE))).text()).toBe('page')
    expect(await (await visit(await typed.printed(URL_LINE))).text()).toBe('app')
  })

  test('a reader of stdout that leaves ends it without a crash', async () => {
    const tunnels = await server()
    const command = `bun bin/localtunnels.ts ${freePort()} --json --subdomain left --server http://127.0.0.1:${tunnels.port} | head -n 1`
    const shell = Bun.spawn(['sh', '-c', command], { stdout: 'pipe', stderr: 'pipe' })
    expect(await new Response(shell.stdout).text()).toContain('"connecting"')
    // All that it said by itself may have been written before the reader left: a program learns of that with its next line.
    while (shell.exitCode === null)
      await fetch(`http://127.0.0.1:${tunnels.port}/`, { headers: { host: 'left.localhost' } })
    expect(await new Response(shell.stderr).text()).toBe('')
  })
})

describe('on a terminal', () => {
  test('shows the URL, a line per request, and the totals at Ctrl+C', async () => {
    const { port } = app(() => new Response('hello', { status: 201 }))
    const run = open(startOnTerminal([String(port)], { NO_COLOR: '1' }))
    const url = await run.printed(/ (http:\/\/\S+\.localhost:\d+)\r\n/)
    await run.printed(/● live/)
    await visit(url, '/%1b[31mred')
    await run.printed(/201 {2}GET +\/%1b\[31mred .* B\r\n/)
    await run.printed(/● live {2}1 request/)
    run.type(CTRL_C)
    expect(await run.exited).toBe(0)
    expect(run.stdout).toMatch(/1 request, 0 errors, [^\n]*\r\n$/)
  })

  test('says that nothing listens, heals when the app starts, notices when it goes', async () => {
    const port = freePort()
    const run = open(startOnTerminal([`${port}`], { NO_COLOR: '1' }))
    await run.printed(new RegExp(`○ nothing on :${port} yet`))
    const url = await run.printed(/ (http:\/\/\S+\.localhost:\d+)\r\n/)
    const late = app(() => new Response('here'), port)
    await run.printed(/● live/)
    expect(await (await visit(url)).text()).toBe('here')
    await late.stop(true)
    expect((await visit(url)).status).toBe(502)
    await run.printed(/GET .*ORIGIN_REFUSED/)
    await run.printed(/● live[\s\S]*○ nothing on/)
  })

  test('shows an outage of the server and its end, under the same URL', async () => {
    const { port } = app(() => new Response('hello'))
    const first = await server()
    const name = ['--subdomain', 'steady']
    const run = open(startOnTerminal([String(port), '--server', first.url, ...name], { NO_COLOR: '1' }))
    await run.printed(/● live/)
    await first.stop()
    await run.printed(/◐ reconnecting/)
    const second = await server(first.port)
    await run.printed(/◐ reconnecting[\s\S]*● live/)
    expect(await (await visit(`http://steady.localhost:${second.port}`)).text()).toBe('hello')
  })

  /** A terminal with one request that the app holds until told. */
  async function holding() {
    const arrived = Promise.withResolvers<void>()
    const held = Promise.withResolvers<Response>()
    const { port } = app(() => {
      arrived.resolve()
      return held.promise
    })
    const run = open(startOnTerminal([String(port)], { NO_COLOR: '1' }))
    const url = await run.printed(/ (http:\/\/\S+\.localhost:\d+)\r\n/)
    await run.printed(/● live/)
    const answer = visit(url, '/slow').then(response => response.text(), String)
    await arrived.promise
    run.type(CTRL_C)
    await run.printed(/finishing 1 request/)
    return { run, held, answer }
  }

  test('Ctrl+C lets an answer under way finish', async () => {
    const { run, held, answer } = await holding()
    held.resolve(new Response('complete'))
    expect(await answer).toBe('complete')
    expect(await run.exited).toBe(0)
    expect(run.stdout).toMatch(/1 request, 0 errors, [^\n]*\r\n$/)
  })

  test('a second Ctrl+C leaves at once', async () => {
    const { run, held, answer } = await holding()
    // Pressed until it counts: the first ones may come as fast as a runner repeats one press.
    const pressing = setInterval(() => run.type(CTRL_C), 50)
    expect(await run.exited).toBe(130)
    clearInterval(pressing)
    held.resolve(new Response('late'))
    await answer
  })
})

describe('what it offers', () => {
  test('a dev server that refuses the host gets one line with the fix', async () => {
    const { port } = app(({ headers }) =>
      headers.get('host')?.startsWith('localhost')
        ? new Response('fine')
        : new Response('Blocked request. This host ("x") is not allowed.', { status: 403 }),
    )
    const run = open(start([String(port)]))
    const url = await run.printed(URL_LINE)
    await visit(url)
    await run.printed(
      /Vite refuses the host \S+\.localhost\. Fix: add server: \{ allowedHosts: \['\.localhost'\] \}/,
    )
  })

  test('--qr draws the URL, --copy asks the terminal, a taken name is said', async () => {
    const { port } = app(() => new Response())
    const { url } = await server()
    const args = [String(port), '--server', url, '--subdomain', 'wanted']
    await open(start(args)).printed(URL_LINE)
    const run = open(startOnTerminal([...args, '--qr', '--copy'], { NO_COLOR: '1', SSH_CONNECTION: 'x' }))
    await run.printed(/name wanted is in use; this tunnel got wanted-2/)
    await run.printed(/[▀▄█]{10}/)
    const copied = await run.printed(/52;c;([\w+/=]+)/)
    expect(atob(copied)).toStartWith('http://wanted-2.localhost:')
  })
})

describe('what cannot work ends with one line and an exit code', () => {
  const line = (code: string) => new RegExp(`^error ${code}: [^\\n]*\\n$`)

  test('something else there', async () => {
    const { port } = app(() => new Response('a web site'))
    const { exitCode, stderr } = await finish(['3000', '--server', `127.0.0.1:${port}`])
    expect(stderr).toMatch(line('SERVER_REFUSED'))
    expect(exitCode).toBe(3)
  })

  test('a wrong token, also for a program that reads JSON', async () => {
    const { url } = await server(0, ['right'])
    const { exitCode, stderr, stdout } = await finish(['3000', '--server', url, '--token', 'wrong', '--json'])
    expect(stderr).toMatch(line('TOKEN_REFUSED'))
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
      type: 'error',
      code: 'TOKEN_REFUSED',
    })
    expect(exitCode).toBe(4)
  })
})
