// The real bin sharing a service with a certificate of its own, by name.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, connect as secure } from 'node:tls'
import { type Certificate, makeCertificate } from '../support/certificates.ts'
import { closedAfterEach } from '../support/opened.ts'
import { folder } from '../support/programs.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { within } from '../support/within.ts'
import { finish, start } from './bin.ts'

const { open } = closedAfterEach()

/** A TLS service that says which name it was asked for. */
async function service(): Promise<number> {
  const server = createServer({ cert: TEST_CERT, key: TEST_KEY }, socket => {
    socket.on('error', () => {})
    socket.end(`<${socket.servername}>`)
  })
  server.on('tlsClientError', () => {}) // the program looks whether anybody listens, and says nothing
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open({
    async [Symbol.asyncDispose]() {
      server.close()
    },
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function visit(port: number, servername: string): Promise<string> {
  const visitor = secure({ host: '127.0.0.1', port, servername, rejectUnauthorized: false })
  const [said] = await within(once(visitor, 'data'), 'what the service says')
  visitor.destroy()
  return String(said)
}

test('here: stdout is the address alone', async () => {
  const run = open(start(['tls', `127.0.0.1:${await service()}`, '--subdomain', 'Shop', '--wildcard']))
  const port = Number(await run.printed(/^tls:\/\/shop\.localhost:(\d+)\n/m))
  expect(await visit(port, 'shop.localhost')).toBe('<shop.localhost>')
  expect(await visit(port, 'a.shop.localhost')).toBe('<a.shop.localhost>')
  run.kill('SIGTERM')
  expect(await run.exited).toBe(0)
  expect(run.stdout).toBe(`tls://shop.localhost:${port}\n`)
})

test('`tcp --tls` is the same', async () => {
  const run = open(start(['tcp', '--tls', `127.0.0.1:${await service()}`, '--subdomain', 'shop']))
  const port = Number(await run.printed(/^tls:\/\/shop\.localhost:(\d+)\n/m))
  expect(await visit(port, 'shop.localhost')).toBe('<shop.localhost>')
  const { stderr, exitCode } = await finish(['tcp', '--tls', '8443', '--remote-port', '20000'])
  expect(stderr).toMatch(/^error OPTION_INVALID: --tls gives a name [^\n]*\n$/)
  expect(exitCode).toBe(2)
  const nameless = await finish(['tcp', '8443', '--subdomain', 'shop'])
  expect(nameless.stderr).toMatch(/^error OPTION_INVALID: --subdomain is for --tls[^\n]*\n$/)
})

test('through a server with --tls-port; one without refuses', async () => {
  const args = ['server', '--host', '127.0.0.1', '--port', '0']
  const listening = open(start([...args, '--tls-port', '0']))
  const url = await listening.printed(/(http:\/\/localhost:\d+)/)
  const run = open(start(['tls', `127.0.0.1:${await service()}`, '--server', url]))
  const shown = await listening.printed(/TLS tunnels on port (\d+)\n/)
  const [name, port] = (await run.printed(/^tls:\/\/([a-z0-9-]+\.localhost:\d+)\n/m)).split(':')
  expect(await visit(Number(port), name ?? '')).toBe(`<${name}>`)
  // Any free one: nothing else says which.
  expect(shown).toBe(port ?? '')
  const without = open(start(args))
  const closed = await without.printed(/(http:\/\/localhost:\d+)/)
  const { exitCode, stderr } = await finish(['tls', '8443', '--server', closed])
  expect(stderr).toContain('KIND_REFUSED')
  expect(exitCode).toBe(4)
})

test('a name that cannot be one', async () => {
  const { exitCode, stderr } = await finish(['tls', '8443', '--subdomain', 'a.b'])
  expect(stderr).toContain('NAME_INVALID')
  expect(exitCode).toBe(2)
})

test('a certificate that was renewed is shown after SIGHUP, on the connections that begin then', async () => {
  const [one, two] = [await makeCertificate(['one.test']), await makeCertificate(['two.test'])]
  const home = open(await folder('renewal'))
  const renew = async ({ cert, key }: Certificate) => {
    await Bun.write(`${home.path}/cert.pem`, cert)
    await Bun.write(`${home.path}/key.pem`, key)
  }
  await renew(one)
  const file = `${home.path}/server.toml`
  const tls = `[tls]\ncert = "${home.path}/cert.pem"\nkey = "${home.path}/key.pem"\n`
  await Bun.write(file, `port = 0\nhost = "127.0.0.1"\n${tls}`)
  const run = open(start(['server', '--config', file]))
  const port = Number(await run.printed(/^https:\/\/localhost:(\d+)\n/m))
  const shown = async () => {
    const visitor = secure({ host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false })
    await within(once(visitor, 'secureConnect'), 'the handshake')
    return visitor
  }
  const before = await shown()
  expect(before.getPeerCertificate().subject.CN).toBe('one.test')
  await renew(two)
  run.kill('SIGHUP')
  await run.printed(/is in force/)
  const after = await shown()
  expect(after.getPeerCertificate().subject.CN).toBe('two.test')
  before.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [answer] = await within(once(before, 'data'), 'an answer')
  expect(String(answer)).toContain('200 OK')
  for (const visitor of [before, after]) visitor.destroy()
})
