// Recognising dev servers that refuse the public host. The apps here answer in the words of the real ones.

import { afterEach, expect, test } from 'bun:test'
import { explainRefusal } from '../../src/cli/sharing/dev-server.ts'
import { looksRefused } from '../../src/cli/sharing/refused-host.ts'

const servers: Bun.Server<undefined>[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.stop(true)))
})

/** An app that refuses every host but localhost, in the given words. */
function refusing(status: number, text: string): string {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) =>
      headers.get('host')?.startsWith('127.') ? new Response('fine') : new Response(text, { status }),
  })
  servers.push(server)
  return server.url.origin
}

const PUBLIC = 'https://calm-otter.tunnel.example'
const SEEN = { status: 403, path: '/' }

test.each([
  [
    'Vite',
    403,
    'Blocked request. This host ("calm-otter.tunnel.example") is not allowed.\nTo allow this host, add "x" to `server.allowedHosts` in vite.config.js.',
    "server: { allowedHosts: ['.tunnel.example'] }",
  ],
  [
    'Vite preview',
    403,
    'Blocked request. This host ("x") is not allowed.\nTo allow this host, add "x" to `preview.allowedHosts` in vite.config.js.',
    "preview: { allowedHosts: ['.tunnel.example'] }",
  ],
  [
    'Angular',
    403,
    '<h1>Blocked request. This host ("x") is not allowed.</h1>To allow this host, add it to <code>allowedHosts</code> under the <code>serve</code> target in <code>angular.json</code>.',
    '"allowedHosts": [".tunnel.example"]',
  ],
  ['webpack-dev-server', 403, 'Invalid Host header', "devServer: { allowedHosts: ['.tunnel.example'] }"],
  ['Rails', 403, '<h1>Blocked hosts: calm-otter.tunnel.example</h1>', 'config.hosts << ".tunnel.example"'],
  [
    'Django',
    400,
    "Invalid HTTP_HOST header: 'x'. You may need to add 'x' to ALLOWED_HOSTS.",
    "'.tunnel.example'",
  ],
])('%s: one line with its fix', async (name, status, text, fix) => {
  const line = await explainRefusal(refusing(status, text), PUBLIC, { status, path: '/' })
  expect(line).toStartWith(`${name} refuses the host calm-otter.tunnel.example.`)
  expect(line).toContain(fix)
  expect(line).not.toContain('\n')
})

test('Next.js: its development files refused to other origins only', async () => {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) =>
      new Response('Unauthorized', { status: headers.get('origin') === null ? 200 : 403 }),
  })
  servers.push(server)
  const line = await explainRefusal(server.url.origin, PUBLIC, { status: 403, path: '/_next/static/x.js' })
  expect(line).toContain("allowedDevOrigins: ['*.tunnel.example']")
})

test('the app is asked straight, whatever proxy the environment names', async () => {
  const { HTTP_PROXY } = process.env
  process.env.HTTP_PROXY = 'http://127.0.0.1:1'
  try {
    const line = await explainRefusal(refusing(403, 'Invalid Host header'), PUBLIC, SEEN)
    expect(line).toStartWith('webpack-dev-server refuses')
  } finally {
    if (HTTP_PROXY === undefined) delete process.env.HTTP_PROXY
    else process.env.HTTP_PROXY = HTTP_PROXY
  }
})

test('an app’s own 403, an app that is gone and other words explain nothing', async () => {
  expect(await explainRefusal(refusing(403, 'You shall not pass'), PUBLIC, SEEN)).toBeUndefined()
  expect(await explainRefusal(refusing(200, 'Invalid Host header'), PUBLIC, SEEN)).toBeUndefined()
  expect(await explainRefusal('http://127.0.0.1:1', PUBLIC, SEEN)).toBeUndefined()
  expect(
    await explainRefusal(refusing(403, 'Forbidden'), PUBLIC, { status: 403, path: '/_next/x' }),
  ).toBeUndefined()
})

test('only 400 and 403 are worth asking, and what is no HTTP from Next', () => {
  expect([400, 403].every(status => looksRefused({ status, path: '/' }))).toBe(true)
  expect([200, 401, 404, 500, 502].some(status => looksRefused({ status, path: '/' }))).toBe(false)
  expect(looksRefused({ status: 502, path: '/', error: 'ORIGIN_INVALID' })).toBe(false)
  expect(looksRefused({ status: 502, path: '/_next/hmr', error: 'ORIGIN_INVALID' })).toBe(true)
  expect(looksRefused({ status: 403, path: '/', error: 'ORIGIN_REFUSED' })).toBe(false)
})
