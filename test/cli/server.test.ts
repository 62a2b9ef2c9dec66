// `localtunnels server` and `localtunnels doctor`, run for real.

import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { makeCertificate } from '../support/certificates.ts'
import { closedAfterEach } from '../support/opened.ts'
import { OutboundProxy } from '../support/outbound-proxy.ts'
import { folder } from '../support/programs.ts'
import { within } from '../support/within.ts'
import { finish, start } from './bin.ts'

const { open } = closedAfterEach()

const URL_LINE = /^(http:\/\/\S+)\n/m

async function serverUrl(...args: readonly string[]): Promise<string> {
  return open(start(['server', '--host', '127.0.0.1', '--port', '0', ...args])).printed(URL_LINE)
}

describe('server', () => {
  test('prints its URL, tells of clients and requests, and ends well', async () => {
    const run = open(start(['server', '--host', '127.0.0.1', '--port', '0']))
    const url = await run.printed(URL_LINE)
    const app = Bun.serve({ port: 0, fetch: () => new Response('hi') })
    const client = open(start([String(app.port), '--server', url, '--subdomain', 'shop']))
    const tunnel = new URL(await client.printed(URL_LINE))
    await run.printed(/\+ shop from 127\.0\.0\.1 \(streams\)/)
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/x`, { headers: { host: tunnel.host } })
    expect(await answer.text()).toBe('hi')
    await run.printed(/shop +200 {2}GET .* \/x/)
    client.kill('SIGINT')
    await run.printed(/- shop /)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stdout).toBe(`${url}\n`)
    await app.stop(true)
  })

  test('--json prints one event a line: listening, clients, requests, totals', async () => {
    const args = ['server', '--host', '127.0.0.1', '--port', '0', '--domain', 'LocalHost', '--json']
    const run = open(start(args))
    const url = await run.printed(/"type":"listening".*"url":"([^"]+)"/)
    const client = open(start(['--serve', import.meta.dir, '--server', url, '--subdomain', 'shop']))
    const tunnel = new URL(await client.printed(URL_LINE))
    await fetch(`http://127.0.0.1:${tunnel.port}/nothing`, { headers: { host: tunnel.host } })
    await run.printed(/"type":"response"/)
    client.kill('SIGINT')
    await run.printed(/"type":"disconnection"/)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    const events = run.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { readonly type: string })
    expect(events.map(({ type }) => type)).toEqual([
      'listening',
      'connection',
      'response',
      'disconnection',
      'draining',
      'totals',
    ])
    // As certificates are named, however the domain was spelled.
    expect(events[0]).toMatchObject({ domains: ['localhost'] })
    expect(events[2]).toMatchObject({ method: 'GET', path: '/nothing', status: 404, subdomain: 'shop' })
    expect(run.stderr).toBe('')
  })

  test('without a token, on addresses that others reach, does not start', async () => {
    for (const args of [[], ['--host', '::'], ['--domain', 'tunnel.localhost']]) {
      const { stdout, stderr, exitCode } = await finish(['server', '--port', '0', ...args])
      expect(stderr).toMatch(/^error OPEN_SERVER: .*--token.*--host 127\.0\.0\.1.*--open/)
      expect([stdout, exitCode]).toEqual(['', 2])
    }
  })

  test('without a token behind a proxy, does not start, also on the loopback', async () => {
    const flags = [
      ['--public-url', 'https://tunnel.example'],
      ['--base-path', '/tunnel'],
      ['--trusted-proxy', '127.0.0.1'],
      ['--domain', 'localhost', '--domain', 'tunnel.example'],
    ]
    for (const args of flags) {
      const { stdout, stderr, exitCode } = await finish([
        'server',
        '--host',
        '127.0.0.1',
        '--port',
        '0',
        ...args,
      ])
      expect(stderr).toMatch(/^error OPEN_SERVER: .*behind a proxy.*--token.*--open/)
      expect(stderr).not.toContain('--host')
      expect([stdout, exitCode]).toEqual(['', 2])
    }
    for (const more of [['--open'], ['--token', 's3cret']]) {
      const run = open(start(['server', '--host', '127.0.0.1', '--port', '0', ...more, ...flags.flat()]))
      await run.printed(/^https:\/\/localhost\/tunnel\n/m)
      run.kill('SIGTERM')
      expect(await run.exited).toBe(0)
    }
  })

  test('without a token, with --open, starts and says it in one line', async () => {
    const run = open(start(['server', '--port', '0', '--open']))
    await run.printed(URL_LINE)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stderr.match(/Warning: .*to everyone/g)).toHaveLength(1)
  })

  test.each(['127.0.0.1', 'localhost', '::1'])('without a token, on %s alone, says nothing', async host => {
    const run = open(start(['server', '--port', '0', '--host', host]))
    await run.printed(URL_LINE)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stderr).not.toContain('everybody')
  })

  test('with a token, on every address, says nothing', async () => {
    const run = open(start(['server', '--port', '0', '--token', 's3cret']))
    await run.printed(URL_LINE)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    expect(run.stderr).not.toContain('everybody')
  })

  test('has a line for a refused token, with the address', async () => {
    const run = open(start(['server', '--host', '127.0.0.1', '--port', '0', '--token', 's3cret']))
    const url = await run.printed(URL_LINE)
    await finish(['3000', '--server', url, '--token', 'wr0ng'])
    await run.printed(/refused 127\.0\.0\.1 \((?:streams|json)\): TOKEN_REFUSED/)
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    for (const secret of ['s3cret', 'wr0ng']) expect(run.stderr).not.toContain(secret)
  })

  test('lets in who has one of its tokens, refuses who has not', async () => {
    const url = await serverUrl('--token', 'first', '--token', 's3cret')
    const [without, wrong] = await Promise.all([
      finish(['3000', '--server', url]),
      finish(['3000', '--server', url, '--token', 'wrong']),
    ])
    for (const { stderr, exitCode } of [without, wrong]) {
      expect(stderr).toContain('error TOKEN_REFUSED: ')
      expect(exitCode).toBe(4)
    }
    const client = open(start(['3000', '--server', url, '--subdomain', 'shop'], { TUNNEL_TOKEN: 's3cret' }))
    expect(await client.printed(URL_LINE)).toStartWith('http://shop.localhost:')
  })

  test('a port in use is one line and exit code 5', async () => {
    const { port } = new URL(await serverUrl())
    const { stderr, exitCode } = await finish(['server', '--host', '127.0.0.1', '--port', port])
    expect(stderr).toMatch(/^error PORT_IN_USE: [^\n]*\n$/)
    expect(stderr).toContain(port)
    expect(exitCode).toBe(5)
  })

  test('a certificate that is none is one line and exit code 2', async () => {
    const { stderr, exitCode } = await finish(
      'server --port 0 --host 127.0.0.1'
        .split(' ')
        .concat('--tls-cert', import.meta.path, '--tls-key', import.meta.path),
    )
    expect(stderr).toMatch(/^error TLS_INVALID: [^\n]*\n$/)
    expect(exitCode).toBe(2)
  })
})

describe('doctor', () => {
  test('--json prints a line for each check, and one with their number', async () => {
    const { stdout, stderr, exitCode } = await finish(['doctor', '1', '--server', '127.0.0.1:1', '--json'])
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(stderr).toBe('')
    expect(lines.at(-1)).toEqual({ type: 'checked', faults: 2 })
    expect(lines.slice(0, -1).every(({ type }) => type === 'check')).toBe(true)
    expect(lines.find(({ what }) => what === 'app')).toEqual({
      type: 'check',
      verdict: 'fail',
      what: 'app',
      found: 'nothing listens on http://localhost:1',
      fix: 'Start the app, or check --port and --host.',
    })
    expect(lines.find(({ what }) => what === 'port').found).toStartWith('127.0.0.1 is this machine, and ')
    expect(lines.filter(({ verdict }) => verdict === 'fail').length).toBe(2)
    expect(exitCode).toBe(6)
  })

  test('a server under .localhost is this machine, as it is for the client', async () => {
    const { port } = new URL(await serverUrl())
    const { stdout } = await finish(['doctor', '--server', `http://tunnel.localhost:${port}`])
    expect(stdout).toMatch(/^ok +server name +tunnel\.localhost is (?:127\.0\.0\.1|::1)$/m)
  })

  test('asks for the same name each time: with --acme each new one costs a certificate', async () => {
    const url = await serverUrl()
    const name = async () => /doctor-\w+/.exec((await finish(['doctor', '--server', url])).stdout)?.[0]
    const first = await name()
    const second = await name()
    expect(first).toBeDefined()
    expect(second).toBe(first!)
  })

  test('finds nothing wrong with a server and an app that work', async () => {
    const url = await serverUrl()
    const { port } = new URL(url)
    const { stdout, exitCode } = await finish(['doctor', port, '--server', url], { TUNNEL_TOKEN: 'hidden' })
    for (const what of [
      'runtime',
      'app',
      'server name',
      'server',
      'clock',
      'registration',
      'DNS',
      'public side',
    ]) {
      expect(stdout).toMatch(new RegExp(`^${what === 'clock' ? '(?:ok|note)' : 'ok'} +${what} `, 'm'))
    }
    expect(stdout).toContain('TUNNEL_TOKEN=(set)')
    expect(stdout).not.toContain('hidden')
    expect(stdout).not.toMatch(/^fail/m)
    expect(exitCode).toBe(0)
  })

  test('says what to do about an app and a server that are not there', async () => {
    const { port } = Bun.serve({ port: 0, fetch: () => new Response() })
    const other = await finish(['doctor', '--server', `127.0.0.1:${port}`])
    expect(other.stdout).toMatch(/^fail +server +\S+ returns 200, but not as a tunnel server\n +→ Check/m)
    expect(other.exitCode).toBe(6)
    const { stdout, exitCode } = await finish(['doctor', '1', '--server', '127.0.0.1:1'], {
      HTTPS_PROXY: 'http://p',
    })
    expect(stdout).toMatch(/^note +proxy +HTTPS_PROXY set, but not used/m)
    expect(stdout).toMatch(/^fail +app +nothing listens on \S+\n +→ Start the app/m)
    expect(stdout).toMatch(/^fail +server +\S+ does not respond: .*\n +→ .*localtunnels server/m)
    expect(exitCode).toBe(6)
  })

  test('looks for a folder that is to be served', async () => {
    const there = await finish(['doctor', '--serve', 'docs'])
    expect(there.stdout).toMatch(/^ok +app +docs\/ is a folder$/m)
    const nowhere = await finish(['doctor', '--serve', 'nowhere'])
    expect(nowhere.stdout).toMatch(/^fail +app +nowhere\/ is not a folder\n +→ Build the app first/m)
    expect([there.exitCode, nowhere.exitCode]).toEqual([0, 6])
  })

  test('goes the way of the client, through a proxy, and never shows its password', async () => {
    const url = await serverUrl()
    const login = { user: 'anna', password: 'hidden' }
    using proxy = await OutboundProxy.start({ kind: 'http', login })
    const { stdout, exitCode } = await finish(['doctor', '--server', url], { TUNNEL_PROXY: proxy.url() })
    expect(stdout).toMatch(/^ok +proxy +to the server through http:\/\/127\.0\.0\.1:\d+, with a login/m)
    expect(stdout).toMatch(/^ok +public side /m)
    expect(stdout).toContain('TUNNEL_PROXY=(set)')
    expect(stdout).not.toMatch(/hidden|anna|^fail/m)
    // Status, registration, and a request through the public side.
    expect(proxy.targets.length).toBe(3)
    expect(exitCode).toBe(0)
  })

  test('says what to do about a proxy that wants another password, or is not there', async () => {
    using proxy = await OutboundProxy.start({ kind: 'http', login: { user: 'anna', password: 'other' } })
    const wrong = `http://anna:hidden@127.0.0.1:${proxy.port}`
    const refused = await finish(['doctor', '--server', 'https://tunnel.example', '--proxy', wrong])
    expect(refused.stdout).toMatch(/^fail +server .* did not accept user and password\. Put them into/m)
    expect(refused.stdout).not.toContain('hidden')
    expect(refused.exitCode).toBe(6)
    const args = ['doctor', '--server', 'https://tunnel.example']
    const absent = await finish(args, { https_proxy: 'http://127.0.0.1:1' })
    expect(absent.stdout).toMatch(/^fail +server .*The proxy http:\/\/127\.0\.0\.1:1 cannot be reached/m)
    const unusable = await finish(args, { ALL_PROXY: 'socks4://anna:hidden@proxy' })
    expect(unusable.stdout).toMatch(/^fail +proxy +ALL_PROXY names a socks4:\/\/ proxy/m)
    expect(unusable.stdout).not.toContain('hidden')
  })

  test('without a server says so and ends well', async () => {
    const { stdout, exitCode } = await finish(['doctor'])
    expect(stdout).toMatch(/^note +server +none named/m)
    expect(exitCode).toBe(0)
  })
})

describe('server --tls-cert', () => {
  const shown = async (port: string, servername: string): Promise<string> => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', servername, rejectUnauthorized: false })
    await within(once(socket, 'secureConnect'), 'the handshake')
    const { subject } = socket.getPeerCertificate()
    socket.destroy()
    return String(subject.CN)
  }

  test.each([1, 2])(
    '%d of them: the name chooses, and files that change are shown without a restart',
    async count => {
      await using dir = await folder('cli-certificates')
      const write = async (file: string, names: readonly string[]) => {
        const { cert, key } = await makeCertificate(names)
        // The key first: a pair that does not fit is reported, and the one from before stays.
        await Bun.write(`${dir.path}/${file}.key`, key)
        await Bun.write(`${dir.path}/${file}.crt`, cert)
      }
      const files = ['one', 'two'].slice(0, count)
      for (const file of files) await write(file, [`${file}.localhost`])
      const flags = files.flatMap(file => [
        '--tls-cert',
        `${dir.path}/${file}.crt`,
        '--tls-key',
        `${dir.path}/${file}.key`,
      ])
      const run = open(start(['server', '--host', '127.0.0.1', '--port', '0', ...flags]))
      const port = await run.printed(/^https:\/\/localhost:(\d+)$/m)
      const last = `${files.at(-1)}.localhost`
      expect(await shown(port, last)).toBe(last)
      expect(await shown(port, 'one.localhost')).toBe('one.localhost')
      await write(files.at(-1) ?? '', ['new.localhost', last])
      await run.printed(/shown from now on, for new\.localhost/)
      expect(await shown(port, last)).toBe('new.localhost')
      expect(await shown(port, 'one.localhost')).toBe(count === 1 ? 'new.localhost' : 'one.localhost')
      run.kill('SIGTERM')
      expect(await run.exited).toBe(0)
    },
  )
})
