// `localtunnels server` on sockets that listen already, passed by systemd's own `systemd-socket-activate`.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { passedDescriptors } from '../../src/cli/server/activation.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { makeCertificate } from '../support/certificates.ts'
import { eventually } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'

const BIN = join(import.meta.dir, '../../bin/localtunnels.ts')
const { defer } = closedAfterEach()

/** The server, on sockets that systemd's program opened. It runs from the first connection on. */
function activated(
  ports: readonly number[],
  flags: readonly string[] = [],
  address = '127.0.0.1',
): { readonly log: () => string } {
  let text = ''
  const listen = ports.flatMap(port => ['-l', `${address}:${port}`])
  const child = Bun.spawn({
    cmd: [
      'systemd-socket-activate',
      ...['PATH', 'HOME', 'XDG_STATE_HOME'].flatMap(name => ['-E', name]),
      ...listen,
      process.execPath,
      BIN,
      'server',
      '--json',
      ...['--host', '127.0.0.1'],
      ...flags,
    ],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, XDG_STATE_HOME: '/dev/null/none' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  for (const stream of [child.stdout, child.stderr])
    void (async () => {
      for await (const bytes of stream) text += Buffer.from(bytes).toString()
    })()
  defer(async () => {
    child.kill('SIGKILL')
    await child.exited
  })
  return { log: () => text }
}

/** systemd's program may still be on its way to listen. */
async function patiently<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!/Unable to connect|ECONNREFUSED/.test(String(error))) throw error
      await Bun.sleep(20)
    }
  }
}

describe('sockets of systemd', () => {
  testWith(['systemd-socket-activate'], 'the first visitor starts the server, and is answered', async () => {
    const port = freePort()
    const { log } = activated([port])
    const health = await patiently(() => fetch(`http://127.0.0.1:${port}/health`))
    expect(await health.text()).toBe('OK')
    expect(log()).toContain(`"port":${port}`)
    const app = Bun.serve({ port: 0, fetch: () => new Response('from the app') })
    defer(() => app.stop(true))
    const client = new TunnelClient({ server: `http://127.0.0.1:${port}`, port: app.port, subdomain: 'shop' })
    defer(() => client.disconnect())
    await client.connect()
    const headers = { host: 'shop.localhost' }
    expect(await (await fetch(`http://127.0.0.1:${port}/`, { headers })).text()).toBe('from the app')
  })

  testWith(['systemd-socket-activate'], 'each listener takes the socket of its port', async () => {
    await using dir = await folder('activation')
    const { cert, key } = await makeCertificate(['localhost'])
    await Bun.write(`${dir.path}/cert.pem`, cert)
    await Bun.write(`${dir.path}/key.pem`, key)
    const [main, redirects, tls] = [freePort(), freePort(), freePort()]
    activated(
      // The first that no other wants is the server's own, whatever its port is.
      [redirects, main, tls],
      [
        ...['--tls-cert', `${dir.path}/cert.pem`, '--tls-key', `${dir.path}/key.pem`],
        ...['--http-port', `${redirects}`, '--tls-port', `${tls}`],
      ],
    )
    const plain = await patiently(() => fetch(`http://127.0.0.1:${redirects}/`, { redirect: 'manual' }))
    expect([plain.status, plain.headers.get('location')]).toEqual([308, `https://127.0.0.1:${main}/`])
    const health = await fetch(`https://localhost:${main}/health`, { tls: { ca: cert } })
    expect(await health.text()).toBe('OK')
  })

  testWith(
    ['systemd-socket-activate'],
    'a socket that no listener is for is closed, and told of',
    async () => {
      const [port, other] = [freePort(), freePort()]
      const { log } = activated([port, other], ['--port', `${port}`])
      await patiently(() => fetch(`http://127.0.0.1:${port}/health`))
      expect(log()).toContain(`No listener of this server is for port ${other}.`)
    },
  )
})

testWith(
  ['systemd-socket-activate'],
  'whom a server is open to is what its sockets say, not --host',
  async () => {
    const port = freePort()
    const { log } = activated([port], [], '0.0.0.0')
    // It refuses to start, so systemd's program is gone, and so is the socket.
    await patiently(() => fetch(`http://127.0.0.1:${port}/health`)).catch(() => {})
    await eventually(() => log().includes('OPEN_SERVER'), 'the refusal')
  },
)

test('descriptors for another process, or none, are not taken; a number that is none is refused', () => {
  const passed = (LISTEN_FDS: string, LISTEN_PID = '17') => passedDescriptors({ LISTEN_FDS, LISTEN_PID }, 17)
  expect(passed('3')).toEqual([3, 4, 5])
  expect(passed('0')).toEqual([])
  expect(passed('1', '18')).toEqual([])
  for (const number of ['x', '-1', '65537', ''])
    expect(() => passed(number)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  const environment = { LISTEN_FDS: '1', LISTEN_PID: '17', LISTEN_FDNAMES: 'a', PATH: '/bin' }
  passedDescriptors(environment, 17)
  expect(environment).toEqual({ PATH: '/bin' } as never)
})

test('what does not listen is refused at the start, by its number', async () => {
  const server = new TunnelServer({ port: 0, inherited: [987_654] })
  const error = await server.start().catch((cause: unknown) => cause)
  expect(error).toMatchObject({ code: 'OPTION_INVALID', message: expect.stringContaining('987654') })
  expect(() => new TunnelServer({ inherited: [-1] })).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
})
