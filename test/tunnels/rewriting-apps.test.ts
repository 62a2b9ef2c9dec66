// Programs of other people that insist on their own name, behind a tunnel that visitors reach by https: without rewriting they refuse or lead
// away, with it they work.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { startNginx } from '../support/haproxy.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder, run, startProgram } from '../support/programs.ts'

const ROOT = join(import.meta.dir, '../..')

interface Site extends AsyncDisposable {
  readonly home: string
  /** What curl prints. */
  curl(...args: readonly string[]): Promise<string>
}

async function share(port: number, client: TunnelClientOptions): Promise<Site> {
  const site = await startHttp2Site(port, { client, server: { domains: ['tunnel.example'] } })
  const home = `https://app.tunnel.example:${site.port}`
  const to = ['--resolve', `app.tunnel.example:${site.port}:127.0.0.1`]
  return {
    home,
    curl: async (...args) => (await run(['curl', '-sk', ...to, ...args])).out,
    [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
  }
}

const STATUS = ['-o', '/dev/null', '-w', '%{http_code} %{redirect_url}']

testWith(['nginx', 'curl'], 'nginx: redirects of autoindex, and MOVE of WebDAV', async () => {
  await using dir = await folder('rewriting-nginx')
  await Bun.write(`${dir.path}/www/files/a.txt`, 'a\n')
  await run(['chmod', '-R', '777', `${dir.path}/www`])
  await using nginx = await startNginx(`
    server {
      listen 127.0.0.1:PORT;
      root ${dir.path}/www;
      autoindex on;
      dav_methods PUT DELETE MKCOL COPY MOVE;
      client_body_temp_path ${dir.path}/body;
    }`)
  const move = (home: string, from: string, to: string) => [
    ...['-X', 'MOVE', '-H', `Destination: ${home}/files/${to}`, ...STATUS],
    `${home}/files/${from}`,
  ]
  {
    await using site = await share(nginx.port, { hostHeader: 'rewrite', rewrite: [] })
    expect(await site.curl(...STATUS, `${site.home}/files`)).toBe(`301 http://127.0.0.1:${nginx.port}/files/`)
    expect(await site.curl(...move(site.home, 'a.txt', 'b.txt'))).toBe('400 ')
  }
  await using site = await share(nginx.port, { hostHeader: 'rewrite' })
  expect(await site.curl(...STATUS, `${site.home}/files`)).toBe(`301 ${site.home}/files/`)
  expect(await site.curl('-L', `${site.home}/files`)).toContain('a.txt')
  expect(await site.curl(...move(site.home, 'a.txt', 'b.txt'))).toBe('204 ')
  expect(await site.curl(`${site.home}/files/b.txt`)).toBe('a\n')
  // Below a path of its own.
  await using docs = await share(nginx.port, { hostHeader: 'rewrite', addPrefix: '/files' })
  expect(await docs.curl(`${docs.home}/b.txt`)).toBe('a\n')
  const back = ['-X', 'MOVE', '-H', `Destination: ${docs.home}/c.txt`, ...STATUS, `${docs.home}/b.txt`]
  expect(await docs.curl(...back)).toBe('204 ')
  expect(await Bun.file(`${dir.path}/www/files/c.txt`).text()).toBe('a\n')
})

testWith(['wsgidav', 'curl'], 'WsgiDAV below a path of its own: MOVE and COPY of a file', async () => {
  await using dir = await folder('rewriting-wsgidav')
  await Bun.write(`${dir.path}/dav/a.txt`, 'a\n')
  const port = freePort()
  const options = ['--host=127.0.0.1', `--port=${port}`, `--root=${dir.path}`, '--auth=anonymous', '-q']
  await using _app = await startProgram(['wsgidav', ...options], port)
  const ask = (site: Site, method: string, from: string, to: string) =>
    site.curl('-X', method, '-H', `Destination: ${site.home}/${to}`, ...STATUS, `${site.home}/${from}`)
  const isThere = (path: string) => Bun.file(`${dir.path}/${path}`).exists()
  {
    await using site = await share(port, { addPrefix: '/dav', rewrite: [] })
    expect(await ask(site, 'COPY', 'a.txt', 'b.txt')).toBe('201 ')
    expect([await isThere('dav/b.txt'), await isThere('b.txt')]).toEqual([false, true])
  }
  for (const hostHeader of ['preserve', 'rewrite']) {
    await using site = await share(port, { addPrefix: '/dav', hostHeader })
    expect(await ask(site, 'MOVE', 'a.txt', 'c.txt')).toBe('201 ')
    expect(await ask(site, 'COPY', 'c.txt', 'a.txt')).toBe('201 ')
    expect(await ask(site, 'DELETE', 'c.txt', '')).toBe('204 ')
    expect(await isThere('dav/a.txt')).toBe(true)
  }
})

/** As WordPress does: one address for everything, cookies for its domain, forms only from its own pages. */
const BLOG = `<?php
const HOME = 'http://www.blog.lan';
if ($_SERVER['HTTP_HOST'] !== 'www.blog.lan') {
  header('Location: ' . HOME . $_SERVER['REQUEST_URI'], true, 301);
  exit;
}
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === '/wp-login.php' && $_SERVER['REQUEST_METHOD'] === 'POST') {
  if (!str_starts_with($_SERVER['HTTP_REFERER'] ?? '', HOME . '/')) {
    http_response_code(403);
    exit('The link you followed has expired.');
  }
  setcookie('wordpress_logged_in', 'anna', ['domain' => '.blog.lan', 'path' => '/', 'httponly' => true]);
  header('Location: ' . HOME . '/wp-admin/');
  exit;
}
if ($path === '/wp-admin/' && !isset($_COOKIE['wordpress_logged_in'])) {
  header('Location: ' . HOME . '/wp-login.php');
  exit;
}
echo $path === '/wp-admin/' ? 'Howdy, ' . $_COOKIE['wordpress_logged_in'] : 'A page';
`

testWith(['php', 'curl'], 'PHP: a blog with one address, a login with its cookie', async () => {
  await using dir = await folder('rewriting-php')
  await Bun.write(`${dir.path}/index.php`, BLOG)
  const port = freePort()
  await using _app = await startProgram(
    ['php', '-q', '-S', `127.0.0.1:${port}`, `${dir.path}/index.php`],
    port,
  )
  const login = (home: string) => [
    ...['-L', '-c', `${dir.path}/jar`, '-b', `${dir.path}/jar`, '-d', 'log=anna'],
    ...['-e', `${home}/wp-login.php`, `${home}/wp-login.php`],
  ]
  {
    await using site = await share(port, {})
    expect(await site.curl(...STATUS, `${site.home}/`)).toBe('301 http://www.blog.lan/')
  }
  {
    await using site = await share(port, { hostHeader: 'www.blog.lan', rewrite: ['origin'] })
    expect(await site.curl(...login(site.home))).toBe('The link you followed has expired.')
  }
  await using site = await share(port, { hostHeader: 'www.blog.lan' })
  expect(await site.curl(`${site.home}/`)).toBe('A page')
  expect(await site.curl(...STATUS, `${site.home}/wp-admin/`)).toBe(`302 ${site.home}/wp-login.php`)
  expect(await site.curl(...login(site.home))).toBe('Howdy, anna')
})

test('Vite: pages, and the WebSocket of its client', async () => {
  await using dir = await folder('rewriting-vite')
  await Bun.write(`${dir.path}/index.html`, '<title>A Vite app</title>')
  const port = freePort()
  const vite = join(ROOT, 'node_modules/vite/bin/vite.js')
  const command = ['node', vite, dir.path, '--port', `${port}`, '--host', '127.0.0.1', '--strictPort']
  await using _app = await startProgram(command, port)
  // It tries the port before it stays there.
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isUp())) await Bun.sleep(20)
  {
    await using site = await share(port, {})
    expect(await site.curl(`${site.home}/`)).toContain('Blocked request.')
  }
  await using site = await share(port, { hostHeader: 'rewrite' })
  expect(await site.curl(`${site.home}/`)).toContain('A Vite app')
  const script = await site.curl(`${site.home}/@vite/client`)
  const [, token = ''] = /const wsToken = "([^"]+)"/.exec(script) ?? []
  // As the browser does, which sends the Origin of the page.
  const socket = new WebSocket(`wss://localhost:${new URL(site.home).port}/?token=${token}`, 'vite-hmr', {
    headers: { host: new URL(site.home).host, origin: site.home },
    rejectUnauthorized: false,
  })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  socket.once('message', (data: Buffer) => resolve(data.toString())).once('error', reject)
  expect(await promise).toBe('{"type":"connected"}')
  socket.close()
}, 60_000)
