// TLS with the app: its settings are its own, and `ORIGIN_TLS` says why and which setting helps.

import { expect, test } from 'bun:test'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient } from '../../src/index.ts'
import { makeCertificate, makeDated } from '../support/certificates.ts'
import { startNginx } from '../support/haproxy.ts'
import { describeWith } from '../support/needs.ts'
import { startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const authority = await makeCertificate(['authority'])
const own = await makeCertificate(['nas.lan'], authority)
const selfSigned = await makeCertificate(['localhost'])

const WIRES = ['streams', 'json'] as const

function serve(tls: { readonly cert: string; readonly key: string }) {
  return Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => new Response('from the app') })
}

/** What a visitor gets, and what the client reports of it. */
async function visit(wire: 'streams' | 'json', options: TunnelClientOptions, path = '/') {
  await using tunnel = await startTunnel({ wire, ...options })
  const { promise: told, resolve } = Promise.withResolvers<string>()
  tunnel.client.on('error', error => resolve(error.message))
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}${path}`, { headers: { host: tunnel.host } })
  const text = await answer.text()
  return answer.status === 200 ? text : await within(told, 'the reason')
}

for (const wire of WIRES) {
  test(`${wire}: an authority and a name of the app's own`, async () => {
    using app = serve(own)
    const url = `https://127.0.0.1:${app.port}`
    expect(await visit(wire, { url })).toMatch(/another name|no authority/)
    expect(await visit(wire, { url, appServerName: 'nas.lan' })).toMatch(
      /^The certificate of https:\/\/127\.0\.0\.1:\d+ is not trusted: no authority that this system trusts has signed it \(.+\)\. Trust its authority with --app-ca \(appCa\) or in this system, or accept any certificate of the app with --app-insecure \(appInsecure\)\.$/,
    )
    expect(await visit(wire, { url, appCa: authority.cert })).toEndWith(
      'Give a name that the certificate has with --app-server-name (appServerName).',
    )
    expect(await visit(wire, { url, appCa: authority.cert, appServerName: 'nas.lan' })).toBe('from the app')
    expect(await visit(wire, { url, appInsecure: true })).toBe('from the app')
  })
}

test('a route, and the checks of the health, have the same settings', async () => {
  using app = serve(own)
  const url = `https://127.0.0.1:${app.port}`
  const trusted = { url, appCa: authority.cert, appServerName: 'nas.lan' }
  const routes = { '/nas': trusted, '/strict': { url } }
  const base = { fetch: () => new Response('base'), routes }
  expect(await visit('streams', base, '/nas')).toBe('from the app')
  expect(await visit('streams', base, '/strict')).toMatch(/is not trusted/)
  const health = { path: '/', intervalMs: 50 }
  await using tunnel = await startTunnel({ ...trusted, health })
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
  expect(await answer.text()).toBe('from the app')
})

test('a self-signed app, and one whose certificate has expired', async () => {
  using app = serve(selfSigned)
  expect(await visit('streams', { url: `https://localhost:${app.port}` })).toMatch(/self.signed/)
  const expired = makeDated(Date.UTC(2020, 0, 1), Date.UTC(2020, 1, 1))
  using old = serve(expired)
  expect(await visit('streams', { url: `https://localhost:${old.port}`, appCa: expired.cert })).toMatch(
    /is not trusted: it has expired \(.+\)\. Renew it, .*--app-insecure/,
  )
})

describeWith(['nginx'], 'nginx that rejects handshakes for other names', () => {
  for (const wire of WIRES)
    test(`${wire}: a name helps, and is named`, async () => {
      const files = await Promise.all(
        Object.entries(own).map(async ([kind, text]) => {
          const path = `/tmp/localtunnels-app-tls-${process.pid}-${wire}.${kind}`
          await Bun.write(path, text)
          return path
        }),
      )
      const [cert, key] = files
      await using nginx = await startNginx(`
        server { listen 127.0.0.1:PORT ssl default_server; ssl_reject_handshake on; }
        server { listen 127.0.0.1:PORT ssl; server_name nas.lan; ssl_certificate ${cert}; ssl_certificate_key ${key};
          location / { return 200 "from nginx"; } }`)
      for (const host of ['127.0.0.1', 'localhost']) {
        const url = `https://${host}:${nginx.port}`
        const more = { url, appInsecure: true }
        expect(await visit(wire, more)).toBe(
          `No TLS with ${url}: the app has no certificate for this name. Give a name that the app has with --app-server-name (appServerName).`,
        )
        expect(await visit(wire, { ...more, appServerName: 'nas.lan', hostHeader: 'nas.lan' })).toBe(
          'from nginx',
        )
      }
      await Promise.all(files.map(file => Bun.file(file).delete()))
    })
})

test.each([
  [{ port: 3000, appCa: 'x' }, 'appCa belongs to an https:// URL of the app'],
  [{ url: 'http://localhost:3000', appInsecure: false }, 'appInsecure belongs to'],
  [{ fetch: () => new Response(''), appServerName: 'a' }, 'appServerName belongs to'],
  [{ url: 'https://a.lan', appInsecure: true, appCa: 'x' }, 'exclude each other'],
  [{ url: 'https://a.lan', appServerName: '10.0.0.1' }, 'is not the name of a host'],
  [{ url: 'https://a.lan', appServerName: 'a b' }, 'is not the name of a host'],
  [{ fetch: () => new Response(''), routes: { '/a': { port: 1, appCa: 'x' } } }, 'appCa belongs to'],
] as const)('%j is refused', (options, says) => {
  expect(() => new TunnelClient(options)).toThrow(says)
})

test.each(['/x', '/?a', '/#a', 'user:pw@', 'user@'])(
  'a URL of an app with %s is refused, never dropped',
  part => {
    const url = part.endsWith('@') ? `http://${part}localhost:3000` : `http://localhost:3000${part}`
    const says =
      /^The URL of the app has an? (?:path|query|fragment|login), and none is used: give http:\/\/localhost:3000\.$/
    expect(() => new TunnelClient({ url })).toThrow(says)
    expect(() => new TunnelClient({ port: 1, routes: { '/a': { url } } })).toThrow(says)
  },
)
