// Other people's TLS through a TLS tunnel: nginx with HTTP/2 behind it, curl and openssl in front. Those not installed
// are skipped.

import { expect } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { makeCertificate } from '../support/certificates.ts'
import { startNginx } from '../support/haproxy.ts'
import { testWith } from '../support/needs.ts'
import { folder, run } from '../support/programs.ts'
import { startServer } from '../support/tunnel.ts'

const HOST = '127.0.0.1'

async function startPage(proxyProtocol?: 'v1' | 'v2') {
  const pem = await makeCertificate(['shop.localhost'])
  const home = await folder('tls')
  await Bun.write(`${home.path}/shop.crt`, pem.cert)
  await Bun.write(`${home.path}/shop.key`, pem.key)
  const nginx = await startNginx(`
    server {
      listen 127.0.0.1:PORT ssl http2${proxyProtocol === undefined ? '' : ' proxy_protocol'};
      ssl_protocols TLSv1.2 TLSv1.3;
      ssl_certificate ${home.path}/shop.crt;
      ssl_certificate_key ${home.path}/shop.key;
      return 200 "$server_protocol $ssl_protocol $ssl_server_name $proxy_protocol_addr";
    }`)
  const server = await startServer({ tlsPort: 0 })
  const client = new TunnelClient({ server: `http://${HOST}:${server.port}` })
  const options = { port: nginx.port, host: HOST, subdomain: 'shop' }
  await client.tls({ ...options, ...(proxyProtocol !== undefined && { proxyProtocol }) })
  return {
    port: server.tlsPort ?? 0,
    authority: `${home.path}/shop.crt`,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
      await nginx[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
    },
  }
}

testWith(['nginx', 'curl'], 'curl speaks HTTP/2 with nginx, and verifies its certificate', async () => {
  await using page = await startPage()
  const at = ['--resolve', `shop.localhost:${page.port}:${HOST}`, `https://shop.localhost:${page.port}/`]
  for (const [flags, protocol] of [
    [['--http2'], 'HTTP/2.0 TLSv1.3'],
    [['--http1.1'], 'HTTP/1.1 TLSv1.3'],
    [['--http2', '--tls-max', '1.2'], 'HTTP/2.0 TLSv1.2'],
  ] as const) {
    const { out, err } = await run(['curl', '-sS', '--cacert', page.authority, ...flags, ...at])
    expect([err, out.trim()]).toEqual(['', `${protocol} shop.localhost`])
  }
})

testWith(['nginx', 'curl'], 'nginx reads who connects from a PROXY header', async () => {
  await using page = await startPage('v2')
  const at = ['--resolve', `shop.localhost:${page.port}:${HOST}`, `https://shop.localhost:${page.port}/`]
  const { out } = await run(['curl', '-sS', '--cacert', page.authority, ...at])
  expect(out).toBe(`HTTP/2.0 TLSv1.3 shop.localhost ${HOST}`)
})

testWith(['nginx', 'openssl'], 'openssl gets an alert for an unknown name', async () => {
  await using page = await startPage()
  const command = ['openssl', 's_client', '-connect', `${HOST}:${page.port}`, '-servername']
  const unknown = await run([...command, 'other.localhost'])
  expect(unknown.err).toContain('unrecognized name')
  const known = await run([...command, 'shop.localhost', '-verify_return_error', '-CAfile', page.authority])
  expect(known.out).toContain('Verify return code: 0 (ok)')
})
