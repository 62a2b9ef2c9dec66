// "A fresh machine in ten commands" of docs/operating.md, as an operator types it: the lines are those of the page, the variables those of
// the unit. What a test cannot have is in other words: paths below a folder, the authority and ports by variables, systemd by the command
// that the unit has.

import { expect, test } from 'bun:test'
import { chmod, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { certifiedVisit } from '../support/certified-visit.ts'
import { startNameServer } from '../support/name-server.ts'
import { testWith } from '../support/needs.ts'
import { OutboundProxy } from '../support/outbound-proxy.ts'
import { startPebble } from '../support/pebble.ts'
import { freePort } from '../support/ports.ts'
import { folder, run } from '../support/programs.ts'
import { BIN, startShell } from './bin.ts'

const DOMAIN = 'tunnel.example'
const root = resolve(import.meta.dir, '../..')
const page = await Bun.file(`${root}/docs/operating.md`).text()
const unit = await Bun.file(`${root}/packaging/systemd/localtunnels-server.service`).text()
const section = page.slice(page.indexOf('\n## A fresh machine in ten commands'))
const [, block = ''] = /```sh\n([^`]*)```/.exec(section) ?? []
const commands = block
  .trimEnd()
  .split('\n')
  .filter(line => !line.startsWith('#'))
/** The value of a line of the unit. */
const ofUnit = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

test('they are ten', () => {
  expect(commands).toHaveLength(10)
  expect(commands[1]).toBe('npm install --global bun@1.4.5 ./localtunnels-0.1.0.tgz')
  expect(ofUnit('ExecStart')).toBe('/usr/local/bin/localtunnels server')
})

testWith(
  ['pebble', 'knotd', 'openssl'],
  'those that configure, start and look do so, and what was kept survives a restart',
  async () => {
    await using machine = await folder('fresh')
    await using dns = await startNameServer({ [`${DOMAIN}.`]: '' })
    const ports = { http: freePort(), tls: freePort() }
    await using pebble = await startPebble({ dns: dns.address, httpPort: ports.http, tlsPort: ports.tls })
    await Bun.write(`${machine.path}/ca.pem`, pebble.ca)
    await Bun.write(`${machine.path}/roots.pem`, await (await pebble.manage('/roots/0')).text())
    await Bun.write(`${machine.path}/bin/localtunnels`, `#!/bin/sh\nexec bun '${BIN}' "$@"\n`)
    await chmod(`${machine.path}/bin/localtunnels`, 0o755)
    const env = {
      HOME: `${machine.path}/home`,
      PATH: `${machine.path}/bin:${dirname(process.execPath)}:/usr/bin:/bin`,
    }
    const here = (line: string) => line.replaceAll('/etc/localtunnels', `${machine.path}/etc`)
    const written = await run(['sh', '-ec', commands.slice(2, 7).map(here).join('\n')], env)
    expect(written).toEqual({ out: '', err: '', code: 0 })
    const file = await Bun.file(here(ofUnit('EnvironmentFile'))).text()
    const variables = Object.fromEntries(
      `${file}\n${ofUnit('Environment').replaceAll(' ', '\n')}`
        .split('\n')
        .filter(line => line !== '')
        .map(line => line.split(/=(.*)/s, 2)),
    )
    expect((await stat(`${machine.path}/etc`)).mode & 0o777).toBe(0o700)
    const started = () =>
      startShell([ofUnit('ExecStart').replace('/usr/local/bin/', '')], {
        ...env,
        ...variables,
        XDG_STATE_HOME: `${machine.path}/lib`,
        TUNNEL_SERVER_HOST: '127.0.0.1',
        TUNNEL_SERVER_PORT: `${ports.tls}`,
        TUNNEL_SERVER_HTTP_PORT: `${ports.http}`,
        TUNNEL_SERVER_PUBLIC_URL: `https://${DOMAIN}`,
        TUNNEL_SERVER_ADMIN: '127.0.0.1:0',
        TUNNEL_SERVER_ACME_DIRECTORY: pebble.directory,
        TUNNEL_SERVER_ACME_CA: `${machine.path}/ca.pem`,
      })
    using road = await OutboundProxy.start({ kind: 'http', names: [DOMAIN], ports: { 443: ports.tls } })
    const outside = {
      ...env,
      TOKEN: variables.TUNNEL_SERVER_TOKEN ?? '',
      HTTPS_PROXY: road.url(),
      NODE_EXTRA_CA_CERTS: `${machine.path}/roots.pem`,
    }
    const admin = async (words: string) => {
      const { out, err, code } = await run(
        ['sh', '-c', `XDG_STATE_HOME='${machine.path}/lib' localtunnels admin ${words} --json`],
        env,
      )
      expect([err, code]).toEqual(['', 0])
      return JSON.parse(out)
    }
    const tunnels: string[] = []
    {
      await using server = started()
      await server.printed(/Certificate for tunnel\.example, until/)
      expect((await stat(`${machine.path}/lib/localtunnels/certificates.sqlite`)).mode & 0o777).toBe(0o600)
      const { out } = await run(['sh', '-c', `${commands[9]} --json`], outside)
      const checks = out
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
        .filter(({ type }) => type === 'check')
      // This machine's resolver knows no tunnel.example; the proxy does.
      const faults = checks.filter(
        ({ verdict, what }) => verdict !== 'ok' && what !== 'DNS' && what !== 'http',
      )
      expect(faults).toEqual([])
      expect(checks.map(({ what }) => what)).toContain('public side')

      using app = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('the app') })
      const { TOKEN: token } = outside
      await using client = startShell(
        [`localtunnels ${app.port} --server https://${DOMAIN} --token ${token} --subdomain shop`],
        outside,
      )
      await client.printed(/^https:\/\/shop\.tunnel\.example$/m)
      const roots = await Bun.file(`${machine.path}/roots.pem`).text()
      expect(await certifiedVisit(ports.tls, `shop.${DOMAIN}`, roots)).toBe(`200 DNS:shop.${DOMAIN}`)
      tunnels.push(...(await admin('tunnels')).tunnels.map(({ name }: { name: string }) => name))
      await client.end()
      await server.end()
    }
    expect(tunnels).toEqual(['shop'])
    await using again = started()
    await again.printed(/^https:\/\/tunnel\.example$/m)
    for (const by of ['minute', 'hour', 'day'])
      expect(await admin(`traffic --by ${by} --tunnel shop`)).toMatchObject({ traffic: [{ requests: 1 }] })
    const { entries } = await admin('log')
    expect(entries).toContainEqual(expect.objectContaining({ action: 'tunnel.open', subject: 'shop' }))
  },
)
