// "A server on a fresh machine" of docs/tls.md, as a new user types it: the lines are those of the page.
//
// A test cannot have the machine's name and ports. So the authority and the ports come as variables, and the client reaches
// `tunnel.example:443` through a proxy that knows where that is. Installing is what test/package.test.ts tries.

import { expect, test } from 'bun:test'
import { chmod, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { certifiedVisit } from '../support/certified-visit.ts'
import { startNameServer } from '../support/name-server.ts'
import { testWith } from '../support/needs.ts'
import { OutboundProxy } from '../support/outbound-proxy.ts'
import { startPebble } from '../support/pebble.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { BIN, startShell } from './bin.ts'

const DOMAIN = 'tunnel.example'
const page = await Bun.file(resolve(import.meta.dir, '../../docs/tls.md')).text()
const section = page.slice(page.indexOf('\n## A server on a fresh machine'), page.indexOf('\n### '))
const [onServer = [], onClient = []] = [...section.matchAll(/```sh\n([^`]*)```/g)].map(([, block = '']) =>
  block.trimEnd().split('\n'),
)

test('it is five commands, and the first two install', () => {
  expect([...onServer, ...onClient]).toHaveLength(5)
  expect(onServer[0]).toStartWith('apt-get update && apt-get install')
  expect(onServer[1]).toBe('npm install --global bun ./localtunnels-0.1.0.tgz')
})

testWith(['pebble', 'knotd', 'openssl'], 'the others give a tunnel that answers https', async () => {
  await using machine = await folder('fresh')
  await using dns = await startNameServer({ [`${DOMAIN}.`]: '' })
  const ports = { http: freePort(), tls: freePort() }
  await using pebble = await startPebble({ dns: dns.address, httpPort: ports.http, tlsPort: ports.tls })
  const roots = await (await pebble.manage('/roots/0')).text()
  await Bun.write(`${machine.path}/ca.pem`, pebble.ca)
  await Bun.write(`${machine.path}/roots.pem`, roots)
  await Bun.write(`${machine.path}/bin/localtunnels`, `#!/bin/sh\nexec bun '${BIN}' "$@"\n`)
  await chmod(`${machine.path}/bin/localtunnels`, 0o755)
  const env = {
    HOME: `${machine.path}/home`,
    PATH: `${machine.path}/bin:${dirname(process.execPath)}:/usr/bin:/bin`,
  }
  await using server = startShell(onServer.slice(2), {
    ...env,
    TUNNEL_SERVER_HOST: '127.0.0.1',
    TUNNEL_SERVER_PORT: `${ports.tls}`,
    TUNNEL_SERVER_HTTP_PORT: `${ports.http}`,
    TUNNEL_SERVER_PUBLIC_URL: `https://${DOMAIN}`,
    TUNNEL_SERVER_ACME_DIRECTORY: pebble.directory,
    TUNNEL_SERVER_ACME_CA: `${machine.path}/ca.pem`,
  })
  const token = await server.printed(/^([0-9a-f]{64})$/m)
  await server.printed(/^https:\/\/tunnel\.example$/m)
  await server.printed(/Certificate for tunnel\.example, until/)
  const kept = `${env.HOME}/.local/state/localtunnels/certificates.sqlite`
  expect((await stat(kept)).mode & 0o777).toBe(0o600)

  using road = await OutboundProxy.start({ kind: 'http', names: [DOMAIN], ports: { 443: ports.tls } })
  using app = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('the app') })
  const [line = ''] = onClient
  await using client = startShell([line.replace(/^TUNNEL_TOKEN=… /, '').replace('3000', `${app.port}`)], {
    ...env,
    TUNNEL_TOKEN: token,
    HTTPS_PROXY: road.url(),
    NODE_EXTRA_CA_CERTS: `${machine.path}/roots.pem`,
  })
  const name = await client.printed(/^https:\/\/(\S+\.tunnel\.example)$/m)
  expect(await certifiedVisit(ports.tls, name, roots)).toBe(`200 DNS:${name}`)
})
