// What `localtunnels doctor` finds out about https: certificates of tunnels, and the port that leads there.

import { expect, test } from 'bun:test'
import { checkHttpPort, whyNoAnswer } from '../../src/cli/doctor/https-checks.ts'
import { dialBun } from '../../src/sockets/bun.ts'
import { makeCertificate } from '../support/certificates.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

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
  expect(other).toMatchObject({ verdict: 'note', found: expect.stringContaining('answers 200') })
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
  expect(await whyNoAnswer(dialBun, at('localhost'), {})).toContain('no authority that is trusted here')
  expect(await whyNoAnswer(dialBun, at('shop.localhost'), {})).toContain('no certificate for this name')
  expect(await whyNoAnswer(dialBun, at('late.localhost'), {})).toContain('could not get a certificate')
})
