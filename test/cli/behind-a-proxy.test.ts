// The commands and configurations of docs/behind-a-proxy.md, "Below a path of a site", run as they are there, but for names, ports and
// certificates.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { startNginx } from '../support/haproxy.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder, run, startProgram } from '../support/programs.ts'
import { BIN, finish, start } from './bin.ts'

const page = await Bun.file(join(import.meta.dir, '../../docs/behind-a-proxy.md')).text()
const [, section = ''] = /\n## Below a path of a site\n([\s\S]*?)\n## /.exec(page) ?? []

const blocks = (language: string): readonly string[] =>
  [...section.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) => text)

/** The words of the commands of a block. */
const commands = (block = ''): readonly (readonly string[])[] =>
  block
    .replaceAll('\\\n', ' ')
    .trim()
    .split('\n')
    .map(line => line.replace(/^localtunnels /, '').split(/\s+/))

/** Texts of the page and what they are here. */
type Here = readonly (readonly [string, string])[]
/** Starts a proxy with the configuration `text` of the page. It listens on the port. */
type StartProxy = (text: string, here: Here, dir: string, port: number) => Promise<AsyncDisposable>

const replaced = (text: string, here: Here): string =>
  here.reduce((now, [there, own]) => now.replaceAll(there, own), text)

const PROXIES: readonly (readonly [name: string, language: string, start: StartProxy])[] = [
  [
    'nginx',
    'nginx',
    (text, here, _dir, port) => {
      const [, visitors = ''] = /```nginx\n([\s\S]*?)```/.exec(page) ?? []
      const own = visitors
        .replace('tunnel.example *.tunnel.example', '*.site.example')
        .replaceAll('tunnel.example', 'site.example')
      return startNginx(replaced(own + text, [['listen 443', `listen 127.0.0.1:${port}`], ...here]))
    },
  ],
  [
    'caddy',
    'caddy',
    async (text, here, dir, port) => {
      const own = text
        .replace(/ {2}tls \{[\s\S]*?\n {2}\}\n/, '')
        .replace(/^(\*?\.?site\.example) \{$/gm, `$1:${port} {\n  tls CERT KEY`)
      const global = '{\n  admin off\n  auto_https off\n}\n'
      await Bun.write(`${dir}/Caddyfile`, global + replaced(own, [...here, ...filesIn(dir)]))
      const command = ['caddy', 'run', '--adapter', 'caddyfile', '--config', `${dir}/Caddyfile`]
      return startProgram(command, port, { XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir })
    },
  ],
  [
    'traefik',
    'yaml',
    async (text, here, dir, port) => {
      const tls = `tls:\n  stores: { default: { defaultCertificate: { certFile: CERT, keyFile: KEY } } }\n`
      const own = text.replaceAll('\\\\.site\\\\.example', '\\\\.site\\\\.localhost')
      await Bun.write(`${dir}/dynamic.yml`, replaced(own + tls, [...here, ...filesIn(dir)]))
      const command = [
        'traefik',
        `--entrypoints.web.address=127.0.0.1:${port}`,
        `--providers.file.filename=${dir}/dynamic.yml`,
        '--providers.file.watch=false',
        '--global.checknewversion=false',
        '--global.sendanonymoususage=false',
      ]
      return startProgram(command, port)
    },
  ],
]

const filesIn = (dir: string): Here => [
  ['CERT', `${dir}/fullchain.pem`],
  ['KEY', `${dir}/privkey.pem`],
]

for (const [name, language, startProxy] of PROXIES)
  testWith(
    [name],
    `${name}: token, server, login, tunnel, and the admin page`,
    async () => {
      await using dir = await folder('below-a-path')
      const { cert, key } = await makeCertificate(['site.localhost', '*.site.localhost'])
      await Bun.write(`${dir.path}/fullchain.pem`, cert)
      await Bun.write(`${dir.path}/privkey.pem`, key)
      const [port, server, admin] = [freePort(), freePort(), freePort()]
      const here: Here = [
        ['/etc/ssl/site.example', dir.path],
        ['https://site.example', `https://site.localhost:${port}`],
        ['site.example', 'site.localhost'],
        ['8080', `${server}`],
        ['9090', `${admin}`],
      ]
      const home = {
        HOME: dir.path,
        XDG_STATE_HOME: `${dir.path}/state`,
        XDG_CONFIG_HOME: `${dir.path}/config`,
      }
      const [onServer, onMachine] = blocks('sh').map(text => commands(replaced(text, here)))
      const [add = [], serve = []] = onServer ?? []
      const [login = [], share = []] = onMachine ?? []
      const made = await finish(add, home)
      const token = made.stdout.trim()
      await using _server = start(serve, home)
      await _server.printed(/listening on port/)
      await using _proxy = await startProxy(blocks(language)[0] ?? '', here, dir.path, port)
      // Traefik listens before it has read its routes.
      const health = `https://127.0.0.1:${port}/tunnel/health`
      const tls = { rejectUnauthorized: false, serverName: 'site.localhost' }
      const asked = { headers: { host: `site.localhost:${port}` }, tls }
      const isUp = () =>
        fetch(health, asked).then(
          ({ ok }) => ok,
          () => false,
        )
      while (!(await isUp())) await Bun.sleep(10)
      const ca = ['--ca', `${dir.path}/fullchain.pem`]
      const loggedIn = await run(['bun', BIN, ...login, ...ca], home, `${token}\n`)
      expect([loggedIn.out, loggedIn.code]).toEqual([expect.stringContaining('accepts it'), 0])
      using app = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        fetch: ({ url }) => new Response(new URL(url).pathname),
      })
      await using sharing = start(
        share.map(word => word.replace('3000', `${app.port}`)),
        home,
      )
      const url = await sharing.printed(/^(https:\S+)\n/m)
      expect(new URL(url).host).toEndWith(`.site.localhost:${port}`)
      const get = (address: string) => fetch(address, { tls: { ca: cert } })
      expect(await (await get(`${url}/tunnel/x`)).text()).toBe('/tunnel/x')
      expect(await (await get(`https://site.localhost:${port}/tunnel/admin/`)).text()).toContain('<title>')
      const without = serve.filter(word => word !== '--tokens-db')
      expect((await finish(without, home)).stderr).toContain('error OPEN_SERVER')
    },
    60_000,
  )
