// What the command says when the server cannot be used: the address, the reason, and what to do about it.

import { afterAll, expect, test } from 'bun:test'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { startServer } from '../support/tunnel.ts'
import { finish, start, startOnTerminal } from './bin.ts'

const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
afterAll(() => rm(folder, { recursive: true }))
const own = await makeCertificate(['localhost'])
const other = await makeCertificate(['localhost'])
const rsa = await makeCertificate(['localhost'], undefined, 'rsa')
const file = async (name: string, text: string) => {
  await Bun.write(join(folder, name), text)
  return join(folder, name)
}

const said = async (...args: readonly string[]) => {
  const { stderr, exitCode } = await finish(args)
  expect(stderr.trimEnd()).not.toContain('\n')
  return [stderr, exitCode] as const
}

test('a server with a certificate of its own making: --ca and --insecure are named, and both work', async () => {
  await using server = await startServer({ tls: own })
  const address = `https://localhost:${server.port}`
  const [text, exitCode] = await said('3000', '--server', address)
  expect(text).toStartWith(`error SERVER_UNTRUSTED: The certificate of ${address} is not trusted: `)
  expect(text).toContain('--ca <file>')
  expect(text).toContain('--insecure')
  expect(exitCode).toBe(3)
  expect(text).toContain('no authority that this system trusts has signed it')
  expect(text).toContain('Trust its authority with --ca <file> or in this system')
  const { stdout } = await finish(['doctor', '--server', address])
  expect(stdout).toContain('no authority that this system trusts has signed it')
  expect(stdout).toContain('Trust its authority with --ca <file> or in this system')
  const ca = await file('ca.pem', own.cert)
  for (const more of [['--ca', ca], ['--insecure']]) {
    await using run = start(['--serve', folder, '--server', address, ...more])
    expect(await run.printed(/^(https:\/\/\S+)\n/m)).toEndWith(`.localhost:${server.port}`)
  }
  // The authority of another server.
  const [still] = await said('3000', '--server', address, '--ca', await file('other.pem', other.cert))
  expect(still).toStartWith('error SERVER_UNTRUSTED: ')
})

test('--ca: a file that is not there, and one that is no certificate', async () => {
  const [absent] = await said('3000', '--server', 'localhost:1', '--ca', join(folder, 'absent.pem'))
  expect(absent).toMatch(
    /^error OPTION_INVALID: --ca: \S+absent\.pem cannot be read: there is no such file\.\n$/,
  )
  const [junk] = await said('3000', '--server', 'localhost:1', '--ca', await file('junk.pem', 'junk'))
  expect(junk).toContain('holds no certificate in PEM format')
})

test('http:// to a port that speaks TLS, and the reverse, name the other scheme', async () => {
  await using secure = await startServer({ tls: own })
  const [toTls, exitCode] = await said('3000', '--server', `http://localhost:${secure.port}`)
  expect(toTls).toBe(
    `error SERVER_SCHEME: The port of http://localhost:${secure.port} speaks TLS: use https://localhost:${secure.port}.\n`,
  )
  expect(exitCode).toBe(3)
  await using plain = await startServer()
  for (const more of [[], ['--insecure']]) {
    const [toPlain] = await said('3000', '--server', `https://localhost:${plain.port}`, ...more)
    expect(toPlain).toBe(
      `error SERVER_SCHEME: The port of https://localhost:${plain.port} does not speak TLS: use http://localhost:${plain.port}.\n`,
    )
  }
})

test('what a proxy in front says to plain HTTP on its TLS port is understood too', async () => {
  using nginx = Bun.serve({
    port: 0,
    fetch: () => new Response('<h1>400</h1>The plain HTTP request was sent to HTTPS port', { status: 400 }),
  })
  const [text] = await said('3000', '--server', `http://localhost:${nginx.port}`)
  expect(text).toContain(`speaks TLS: use https://localhost:${nginx.port}`)
})

test('a server that is not there is named with its address and the reason, at once', async () => {
  await using run = start(['3000', '--server', 'http://127.0.0.1:1'])
  const text = await run.printed(/SERVER_UNREACHABLE: .*/)
  expect(text).toStartWith(
    'SERVER_UNREACHABLE: http://127.0.0.1:1 cannot be reached: nothing listens there (ECONNREFUSED). ',
  )
})

test('a server whose name has a typo is named, too', async () => {
  await using run = start(['3000', '--server', 'tunnel.invalid'])
  const text = await run.printed(/SERVER_UNREACHABLE: .*/)
  expect(text).toStartWith(
    'SERVER_UNREACHABLE: https://tunnel.invalid cannot be reached: no address is known',
  )
})

test('a port that closes without a word is unreachable, not taken for TLS', async () => {
  using silent = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: socket => void socket.end() },
  })
  await using run = start(['3000', '--server', `http://127.0.0.1:${silent.port}`])
  const text = await run.printed(/SERVER_UNREACHABLE: .*/)
  expect(text).toContain('the connection ended before an answer')
})

test('a web server is called one', async () => {
  using web = Bun.serve({ port: 0, fetch: () => new Response('<h1>hello</h1>') })
  const [text] = await said('3000', '--server', `http://localhost:${web.port}`)
  expect(text).toContain('answered with status 200: a web server, not a tunnel server.')
})

test.each([
  ['junk as a certificate', 'junk', own.key, 'The certificate is not a certificate in PEM format.'],
  ['junk as a key', own.cert, 'junk', 'The key is not a private key in PEM format.'],
  ['a key of another certificate', own.cert, other.key, 'The key does not belong to the certificate.'],
  ['a key of another type', own.cert, rsa.key, 'The key does not belong to the certificate.'],
])('TLS_INVALID says which: %s', async (name, cert, key, says) => {
  const files = ['--tls-cert', await file(`${name}.crt`, cert), '--tls-key', await file(`${name}.key`, key)]
  const [text, exitCode] = await said('server', '--port', '0', '--host', '127.0.0.1', ...files)
  expect(text).toMatch(/^error TLS_INVALID: .*\.crt, .*\.key: /)
  expect(text).toContain(says)
  expect(exitCode).toBe(2)
})

test('a missing token and a wrong one have messages of their own', async () => {
  await using server = await startServer({ tokens: ['right'] })
  const address = `http://localhost:${server.port}`
  for (const wire of ['streams', 'json']) {
    const [missing, exitCode] = await said('3000', '--server', address, '--wire', wire)
    expect(missing).toStartWith(
      'error TOKEN_REFUSED: The server wants a token, and got none. Run: localtunnels login <server>',
    )
    expect(missing).toContain(': localtunnels login <server>')
    expect(exitCode).toBe(4)
    const [wrong] = await said('3000', '--server', address, '--wire', wire, '--token', 'wrong')
    expect(wrong).toStartWith(
      'error TOKEN_REFUSED: The server does not accept this token. Run: localtunnels login <server>',
    )
  }
  const doctor = await finish(['doctor', '--server', address])
  expect(doctor.stdout).toContain('TOKEN_REFUSED: The server wants a token, and got none.')
  expect(doctor.stdout).not.toContain('proxy in front')
})

test('--wildcard-host without --wildcard, and a token that a proxy would read, say so', async () => {
  const [host] = await said('3000', '--server', 'localhost:1', '--wildcard-host', 'x')
  expect(host).toBe('error OPTION_INVALID: --wildcard-host needs wildcard.\n')
  const proxy = ['--proxy', 'http://127.0.0.1:1']
  const [text] = await said('3000', '--server', 'http://localhost:1', '--token', 'x', ...proxy)
  expect(text).toContain('would go to http://localhost:1 unencrypted, through the proxy http://127.0.0.1:1.')
})

test('--exact without a name says which flag gives one', async () => {
  const [text, exitCode] = await said('3000', '--server', 'localhost:1', '--exact')
  expect(text).toBe('error OPTION_INVALID: --exact needs a name: --subdomain <name>.\n')
  expect(exitCode).toBe(2)
})

test('a token in clear: the flag is named once', async () => {
  const [text] = await said('3000', '--server', 'http://tunnel.invalid', '--token', 'x')
  expect(text).toContain('allow it with --insecure-token.')
})

test.each([
  ['tunnel.invalid', 'Cannot listen on tunnel.invalid:0: no address is known for this name.'],
  ['[::1]', 'Cannot listen on [::1]:0: no address is known for this name.'],
  ['203.0.113.1', 'Cannot listen on 203.0.113.1:0: this machine has no such address (EADDRNOTAVAIL).'],
])('a server on %s says why it cannot', async (host, says) => {
  const [text, exitCode] = await said('server', '--port', '0', '--token', 'x', '--host', host)
  expect(text).toStartWith(`error OPTION_INVALID: ${says}`)
  expect(exitCode).toBe(2)
})

test('a refusal names the name, and the flags with which an operator would allow it', async () => {
  await using server = await startServer({ tcpPorts: '' })
  const address = `http://localhost:${server.port}`
  await using first = start(['--serve', folder, '--server', address, '--subdomain', 'shop'])
  await first.printed(/^http:\/\/shop\./m)
  for (const wire of ['streams', 'json']) {
    const more = ['--subdomain', 'shop', '--exact', '--wire', wire]
    const [taken] = await said('--serve', folder, '--server', address, ...more)
    expect(taken).toBe(
      'error NAME_TAKEN: Another client uses the name "shop". Choose another name, or stop that client: it may be yours, in another terminal.\n',
    )
  }
  const [kind] = await said('tcp', '22', '--server', address)
  expect(kind).toBe(
    'error KIND_REFUSED: The server has no TCP tunnels. Ask the operator to set --tcp-ports, --udp-ports or --tls-port. If you use the JSON wire, use the streams wire.\n',
  )
  const [inbox] = await said('3000', '--server', address, '--subdomain', 'hooks', '--inbox', '/hooks/*')
  expect(inbox).toBe(
    'error INBOX_REFUSED: The server has no inbox. Remove inbox, or ask the operator for a token, and for a server with --inbox.\n',
  )
})

test('a terminal gets the last words, those of doctor and those of login broken between words', async () => {
  for (const args of [
    ['tcp', '27015-99999'],
    ['doctor', '--server', 'https://a-host-that-nobody-has.tunnel.invalid'],
  ]) {
    const run = startOnTerminal(args, { NO_COLOR: '1' })
    await run.exited
    const lines = run.stdout.split('\r\n')
    expect(lines.filter(line => line.length > 100)).toEqual([])
    expect(lines.some(line => line.length > 80)).toBe(true)
  }
  await using server = await startServer({ tokens: ['right'] })
  const config = join(folder, 'a-long-name-of-a-folder-for-the-sake-of-the-width')
  await using run = startOnTerminal(['login', server.url], { NO_COLOR: '1', XDG_CONFIG_HOME: config })
  await run.printed(/\(empty: none\): /)
  run.type('right\r')
  expect(await run.exited).toBe(0)
  expect(run.stdout.split('\r\n').filter(line => line.length > 100)).toEqual([])
  // Whole for who reads it by a program.
  const { stderr } = await finish(['tcp', '27015-99999'])
  expect(stderr).toMatch(/^error OPTION_INVALID: [^\n]{80,}\n$/)
})

test('login does not tell to log in', async () => {
  await using server = await startServer({ tokens: ['right'] })
  const config = join(folder, 'logins')
  await using run = startOnTerminal(['login', server.url], { NO_COLOR: '1', XDG_CONFIG_HOME: config })
  await run.printed(/\(empty: none\): /)
  run.type('wrong\r')
  expect(await run.exited).toBe(4)
  expect(run.stdout).toContain('✗ The server does not accept this token.  TOKEN_REFUSED\r\n    Check it')
  expect(run.stdout).not.toContain('localtunnels login')
  await mkdir(join(config, 'localtunnels'), { recursive: true })
  await Bun.write(join(config, 'localtunnels/logins.json'), '{}')
  await chmod(join(config, 'localtunnels/logins.json'), 0o644)
  const { stderr } = await finish(['whoami'], { XDG_CONFIG_HOME: config })
  expect(stderr).toMatch(/may be read by other users\. Run: chmod 600 \S+logins\.json\n$/)
})

test('doctor finds a server below localhost as the client does, and looks at the services of the file that up would use', async () => {
  await using server = await startServer({ tls: own, domains: ['tunnel.localhost'] })
  const address = `https://tunnel.localhost:${server.port}`
  const { stdout } = await finish(['doctor', '--server', address, '--insecure'])
  expect(stdout).toMatch(/tunnel\.localhost is (?:127\.0\.0\.1|::1)/)
  expect(stdout).toContain(`${address} responds, version `)
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('x') })
  const project = join(folder, 'project')
  await mkdir(project)
  await Bun.write(
    join(project, 'localtunnels.toml'),
    `server = "${address}"\n[services]\nweb = { port = ${app.port} }\nback = { port = 1 }\ndns = { kind = "udp", port = 1 }\n`,
  )
  const checked = await finish(['doctor'], { TUNNEL_SERVER: address }, project)
  expect(checked.stdout).toMatch(/^ok +file +localtunnels\.toml: 3 services$/m)
  expect(checked.stdout).toMatch(new RegExp(`^ok +web +http://localhost:${app.port} accepts`, 'm'))
  expect(checked.stdout).toMatch(/^fail +back +nothing listens on http:\/\/localhost:1$/m)
  expect(checked.exitCode).toBe(6)
  // The server of the file, where the command line names none.
  const alone = await finish(['doctor'], {}, project)
  expect(alone.stdout).toMatch(/tunnel\.localhost is (?:127\.0\.0\.1|::1)/)
  await Bun.write(join(project, 'localtunnels.toml'), 'services = 7\n')
  const faulty = await finish(['doctor'], { TUNNEL_SERVER: address }, project)
  expect(faulty.stdout).toMatch(/^fail +file +localtunnels\.toml:1:\d+ /m)
  expect(faulty.stdout).toContain('localtunnels config check')
})
