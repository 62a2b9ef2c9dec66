// What `localtunnels doctor` finds out about https: certificates of tunnels, and the port that leads there.

import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { checkOwnPort } from '../../src/cli/doctor/checks.ts'
import { checkHttpPort, whyNoAnswer } from '../../src/cli/doctor/https-checks.ts'
import { withPages } from '../../src/cli/documentation.ts'
import { dialBun } from '../../src/sockets/bun.ts'
import { lowPortAdvice } from '../../src/sockets/low-ports.ts'
import { makeCertificate } from '../support/certificates.ts'
import { withoutPrivileges } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder, run } from '../support/programs.ts'
import { startServer } from '../support/tunnel.ts'

const OWN_PORT = resolve(import.meta.dir, '../../src/cli/doctor/checks.ts')

test('port 80: that leads to https, that does something else, that nothing listens on', async () => {
  const tls = await makeCertificate(['localhost'])
  await using server = await startServer({ tls, httpPort: 0 })
  const led = await checkHttpPort(dialBun, 'localhost', server.httpPort)
  expect(led).toMatchObject({
    verdict: 'ok',
    found: expect.stringContaining(`https://localhost:${server.port}`),
  })
  await using plain = await startServer()
  const other = await checkHttpPort(dialBun, 'localhost', plain.port)
  expect(other).toMatchObject({ verdict: 'note', found: expect.stringContaining('returns 200') })
  const none = await checkHttpPort(dialBun, 'localhost', freePort())
  expect(none).toMatchObject({ verdict: 'note', fix: expect.stringContaining('Open port 80') })
})

test('a tunnel whose certificate is missing, or not trusted, is said to be just that', async () => {
  const own = await makeCertificate(['localhost'])
  const failed = Promise.reject(new Error('the order failed'))
  failed.catch(() => {})
  await using server = await startServer({
    certificates: {
      find: name => (name === 'localhost' ? own : name === 'late.localhost' ? failed : undefined),
    },
  })
  const at = (name: string) => `https://${name}:${server.port}`
  expect(await whyNoAnswer(dialBun, at('localhost'), { ca: own.cert })).toBeUndefined()
  expect(await whyNoAnswer(dialBun, at('localhost'), {})).toContain('no authority that this system trusts')
  expect(await whyNoAnswer(dialBun, at('shop.localhost'), {})).toContain('no certificate for this name')
  expect(await whyNoAnswer(dialBun, at('late.localhost'), {})).toContain('could not get a certificate')
})

test('a port of this machine where nothing listens: whether this user may listen there', async () => {
  const firstFree = Number(await Bun.file('/proc/sys/net/ipv4/ip_unprivileged_port_start').text())
  const script = `console.log(JSON.stringify(await (await import('${OWN_PORT}')).checkOwnPort('127.0.0.1', 1)))`
  const { out } = await run(withoutPrivileges(['bun', '--eval', script]))
  expect(JSON.parse(out)).toMatchObject(
    firstFree > 1
      ? { verdict: 'note', found: expect.stringContaining('this user may not listen on port 1') }
      : { verdict: 'note', found: expect.stringContaining('nothing listens on port 1') },
  )
  const port = freePort()
  expect(await checkOwnPort('127.0.0.1', port)).toMatchObject({
    verdict: 'note',
    fix: expect.stringContaining('Start the server'),
  })
  using _busy = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() })
  expect(await checkOwnPort('127.0.0.1', port)).toBeUndefined()
  expect(await checkOwnPort('203.0.113.1', port)).toBeUndefined()
})

test('who may not listen on a port is given the command for it, of Linux only', () => {
  expect(lowPortAdvice('/opt/bun', 'linux')).toContain('sudo setcap cap_net_bind_service=+ep /opt/bun')
  expect(lowPortAdvice('/opt/bun', 'darwin')).not.toContain('setcap')
})

test('a message names the pages that this installation has by their path, the others by that in the repository', async () => {
  await using installed = await folder('pages')
  await Bun.write(`${installed.path}/configuration.md`, '')
  const said = 'See docs/configuration.md and docs/no-such-page.md.'
  expect(withPages(said, installed.path)).toBe(
    `See ${installed.path}/configuration.md and docs/no-such-page.md.`,
  )
})
