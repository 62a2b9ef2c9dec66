// The one way of dialling: what it calls an app that listens, for requests, checks and the watch alike.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { isListening } from '../../src/cli/sharing/origin-watch.ts'
import { dialBun } from '../../src/sockets/bun.ts'
import { dial } from '../../src/sockets/dial.ts'
import { dialNode } from '../../src/sockets/node.ts'
import { ask } from '../support/ask.ts'
import { makeCertificate } from '../support/certificates.ts'
import { codeOf } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { startTunnel } from '../support/tunnel.ts'

const DEAF = { received() {}, drained() {}, ended() {}, closed() {} }

/** How so many dials to a port where nothing listens end, of which one gets that port itself to dial from. */
async function outcomesOf(dialOnce: () => Promise<unknown>): Promise<Set<string>> {
  const outcomes = new Set<string>()
  let isMet = false
  // Linux has 28,232 ports for that, and takes the even ones first; a dozen times as many dials leave no doubt.
  for (let n = 0; n < 200_000 && !isMet; n += 100) {
    const all = await Promise.allSettled(Array.from({ length: 100 }, dialOnce))
    for (const one of all) {
      const error: unknown = one.status === 'rejected' ? one.reason : undefined
      outcomes.add(error instanceof Error && 'code' in error ? String(error.code) : 'connected')
      isMet ||= !(error instanceof Error) || error.message.includes('nothing listens there')
    }
  }
  expect(isMet).toBe(true)
  return outcomes
}

// One to two seconds: some 14,000 dials until one meets itself.
test.skipIf(process.platform !== 'linux').each([
  ['Bun', dialBun],
  ['Node', dialNode],
] as const)(
  'on %s a dial that meets itself is refused, as any other to a port where nothing listens',
  async (_, dialHere) => {
    // Ports for `bind` are odd, those for `connect` even: the one beside a free one is hardly ever in use.
    const free = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    free.stop(true)
    const port = free.port & ~1
    const outcomes = await outcomesOf(async () => {
      const socket = await dialHere({ host: '127.0.0.1', port }, DEAF)
      socket.terminate()
    })
    expect([...outcomes]).toEqual(['ECONNREFUSED'])
  },
  60_000,
)

test('a name under .localhost is this machine for requests and for the watch', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => new Response(request.headers.get('host')),
  })
  const address = { host: 'shop.localhost', port: app.port ?? 0 }
  expect(await isListening(address)).toBe(true)
  await using tunnel = await startTunnel({ ...address, hostHeader: 'rewrite' })
  expect((await ask(tunnel.port, tunnel.host)).body).toBe(`shop.localhost:${app.port}`)
  const away = { host: 'shop.localhost', port: freePort() }
  expect(await isListening(away)).toBe(false)
  expect(await codeOf(dial(away, DEAF))).toBe('ECONNREFUSED')
})

test('over TLS the certificate has to be for the name that was asked for', async () => {
  const certificate = await makeCertificate(['shop.localhost'])
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: certificate, fetch: () => new Response() })
  const tls = { ca: certificate.cert }
  const socket = await dial({ host: 'shop.localhost', port: app.port ?? 0, tls }, DEAF)
  socket.terminate()
  expect(await codeOf(dial({ host: 'other.localhost', port: app.port ?? 0, tls }, DEAF))).toMatch(/ALTNAME/)
})

test.skipIf(process.platform === 'win32')(
  'a dial without a free descriptor is not called refused',
  async () => {
    using app = Bun.listen({ port: 0, hostname: '127.0.0.1', socket: { data() {} } })
    const script = `
    const { dialBun } = await import('${join(import.meta.dir, '../../src/sockets/bun.ts')}')
    const { openSync } = require('node:fs')
    const deaf = { received() {}, drained() {}, ended() {}, closed() {} }
    const to = { host: '127.0.0.1', port: ${app.port} }
    await dialBun(to, deaf)
    try { for (;;) openSync('/dev/null', 'r') } catch {}
    console.log(await dialBun(to, deaf).then(() => 'connected', error => error.code))
    process.exit()`
    const child = Bun.spawn(['sh', '-c', 'ulimit -n 60; exec bun -e "$0"', script], { stdout: 'pipe' })
    expect(await new Response(child.stdout).text()).toBe('EMFILE\n')
  },
)
