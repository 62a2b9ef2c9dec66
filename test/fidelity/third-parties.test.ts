// Programs of other people on both sides of the tunnel: curl, Node's fetch (undici), nginx, wrk. Those not there are skipped.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { describeWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { type LiveTunnel, startTunnel } from '../support/tunnel.ts'

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const RANDOM = Buffer.concat(Array.from({ length: 48 }, () => crypto.getRandomValues(new Uint8Array(65_536))))

async function run(...command: string[]): Promise<{ out: string; bytes: Buffer; code: number }> {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'ignore' })
  const bytes = Buffer.from(await new Response(child.stdout).arrayBuffer())
  return { out: bytes.toString('latin1'), bytes, code: await child.exited }
}

let app: Server
let tunnel: LiveTunnel
let folder = ''
let at: (path: string) => string[]

beforeAll(async () => {
  folder = await mkdtemp(`${tmpdir()}/localtunnels-third-`)
  await Bun.write(`${folder}/random`, RANDOM)
  // nginx started by root reads as nobody.
  await chmod(folder, 0o755)
  app = createServer((request, response) => {
    const { url = '/' } = request
    if (url === '/random') {
      response.writeHead(200, { 'content-length': RANDOM.length })
      return response.end(RANDOM)
    }
    if (url === '/trailers') {
      response.writeHead(200, { trailer: 'x-sum' })
      response.write('body')
      response.addTrailers({ 'x-sum': '42' })
      return response.end()
    }
    if (url === '/hints') {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      return response.end('hinted')
    }
    if (url === '/cut') {
      response.writeHead(200, { 'content-length': 100 })
      response.write('half')
      return setTimeout(() => response.destroy(), 50)
    }
    if (url === '/redirect') {
      response.writeHead(302, { location: '/elsewhere' })
      return response.end()
    }
    const hash = createHash('sha256')
    request.on('data', piece => hash.update(piece))
    request.on('end', () => {
      const { method, rawHeaders, rawTrailers } = request
      response.end(
        JSON.stringify({ method, url, headers: rawHeaders, trailers: rawTrailers, sha: hash.digest('hex') }),
      )
    })
  })
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  tunnel = await startTunnel({ port: (app.address() as AddressInfo).port }) // it listens on a port
  at = path => [
    '-s',
    '--resolve',
    `app.localhost:${tunnel.port}:127.0.0.1`,
    `http://app.localhost:${tunnel.port}${path}`,
  ]
})

afterAll(async () => {
  await tunnel[Symbol.asyncDispose]()
  app.closeAllConnections()
  app.close()
  await rm(folder, { recursive: true })
})

describeWith(['curl'], 'curl', () => {
  test('path as is, other methods, headers in order', async () => {
    const { out } = await run(
      'curl',
      '--path-as-is',
      '-X',
      'PROPFIND',
      '-H',
      'X-b: 1',
      '-H',
      'x-A: 2',
      '-H',
      'X-b: 3',
      ...at('/a/../%2F//?'),
    )
    const { method, url, headers } = JSON.parse(out)
    expect([method, url]).toEqual(['PROPFIND', '/a/../%2F//?'])
    expect(headers.join(' ')).toContain('X-b 1 x-A 2 X-b 3')
  })

  test('HTTP/1.0, HEAD, redirects', async () => {
    expect(JSON.parse((await run('curl', '--http1.0', ...at('/old'))).out).url).toBe('/old')
    expect((await run('curl', '-I', ...at('/random'))).out).toContain(`content-length: ${RANDOM.length}`)
    expect(
      (await run('curl', '-o', '/dev/null', '-w', '%{http_code} %{redirect_url}', ...at('/redirect'))).out,
    ).toEndWith(`302 http://app.localhost:${tunnel.port}/elsewhere`)
  })

  test('uploads with length, chunked, with Expect, and from a pipe', async () => {
    const sha = sha256(RANDOM)
    const file = `${folder}/random`
    for (const options of [
      ['-T', file],
      ['-T', file, '-H', 'Transfer-Encoding: chunked'],
      ['--data-binary', `@${file}`, '-H', 'Expect: 100-continue'],
      ['--data-binary', `@${file}`, '-H', 'Expect:'],
      ['-F', 'x=1'],
    ]) {
      const { out } = await run('curl', ...options, ...at('/upload'))
      if (options[0] !== '-F') expect(JSON.parse(out).sha).toBe(sha)
    }
  })

  test('downloads byte for byte, also slowly', async () => {
    expect(sha256((await run('curl', ...at('/random'))).bytes)).toBe(sha256(RANDOM))
    expect(
      sha256((await run('curl', '--limit-rate', '1500K', '-H', 'Connection: close', ...at('/random'))).bytes),
    ).toBe(sha256(RANDOM))
  }, 60_000)

  test('trailers and early hints', async () => {
    expect((await run('curl', '-i', '--raw', ...at('/trailers'))).out).toEndWith(
      '4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n',
    )
    expect((await run('curl', '-i', ...at('/hints'))).out).toStartWith(
      'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n',
    )
  })

  test('an answer that was cut is an error', async () => {
    const { code } = await run('curl', ...at('/cut'))
    expect([18, 56]).toContain(code)
  })

  test('several URLs on one connection', async () => {
    const urls = Array.from({ length: 20 }, (_, n) => `http://app.localhost:${tunnel.port}/${n}`)
    const { out } = await run(
      'curl',
      '-s',
      '-w',
      ' %{num_connects}\n',
      '--resolve',
      `app.localhost:${tunnel.port}:127.0.0.1`,
      ...urls,
    )
    const lines = out.trim().split('\n')
    expect(lines.map(line => line.slice(-1)).join('')).toBe(`1${'0'.repeat(19)}`)
  })
})

describeWith(['node'], "Node's fetch (undici)", () => {
  test('many requests at once, streamed upload, abort', async () => {
    const script = `
      const http = require('node:http')
      const [port] = process.argv.slice(1)
      const url = 'http://app.localhost:' + port
      // undici does not let one set Host; *.localhost is this machine.
      require('node:dns').lookup = ((lookup) => (name, options, done) => lookup('127.0.0.1', options, done))(require('node:dns').lookup)
      ;(async () => {
        const seen = {}
        const all = await Promise.all(Array.from({ length: 200 }, (_, n) => fetch(url + '/' + n).then(answer => answer.json())))
        seen.inOrder = all.every((one, n) => one.url === '/' + n)
        const body = new ReadableStream({ async start(to) { for (let n = 0; n < 5; n++) { to.enqueue(Buffer.alloc(10000, n)); await new Promise(setImmediate) } to.close() } })
        seen.sha = (await (await fetch(url + '/up', { method: 'POST', body, duplex: 'half' })).json()).sha
        seen.size = (await (await fetch(url + '/random')).arrayBuffer()).byteLength
        seen.cut = await fetch(url + '/cut').then(answer => answer.text()).catch(() => 'cut')
        seen.manual = (await fetch(url + '/redirect', { redirect: 'manual' })).status
        console.log(JSON.stringify(seen))
        process.exit(0)
      })()
    `
    const { out } = await run('node', '-e', script, `${tunnel.port}`)
    const body = Buffer.concat(Array.from({ length: 5 }, (_, n) => Buffer.alloc(10_000, n)))
    expect(JSON.parse(out)).toEqual({
      inOrder: true,
      sha: sha256(body),
      size: RANDOM.length,
      cut: 'cut',
      manual: 302,
    })
  })
})

describeWith(['nginx'], 'nginx as the app', () => {
  test('files, ranges, 304, HEAD, and keep-alive that it ends after a few requests', async () => {
    const port = freePort()
    await Bun.write(
      `${folder}/nginx.conf`,
      `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log /dev/null;
      events {} http { access_log off; keepalive_requests 7; client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b;
      fastcgi_temp_path ${folder}/c; uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
      server { listen 127.0.0.1:${port}; root ${folder}; gzip on; gzip_types *; gzip_min_length 1; } }`,
    )
    const nginx = Bun.spawn(['nginx', '-e', '/dev/null', '-c', `${folder}/nginx.conf`], {
      stdout: 'ignore',
      stderr: 'ignore',
    })
    try {
      await using other = await startTunnel({ port })
      const ask = (init: { method?: string; headers?: Record<string, string> } = {}) =>
        fetch(`http://127.0.0.1:${other.port}/random`, {
          ...init,
          headers: { host: other.host, ...init.headers },
        })
      const deadline = Date.now() + 5_000
      other.client.on('error', () => {})
      while ((await ask({ method: 'HEAD' })).status === 502 && Date.now() < deadline) await Bun.sleep(20)
      const answer = await ask({ headers: { 'accept-encoding': 'identity' } })
      expect(answer.headers.get('content-length')).toBe(`${RANDOM.length}`)
      expect(sha256(await answer.bytes())).toBe(sha256(RANDOM))
      const etag = answer.headers.get('etag')!
      const range = await ask({ headers: { range: 'bytes=1000-1999', 'accept-encoding': 'identity' } })
      expect(range.status).toBe(206)
      expect(Buffer.from(await range.bytes()).equals(RANDOM.subarray(1_000, 2_000))).toBe(true)
      expect((await ask({ headers: { 'if-none-match': etag, 'accept-encoding': 'identity' } })).status).toBe(
        304,
      )
      const statuses = new Set<number>()
      for (let n = 0; n < 200; n++) {
        const one = await ask({ headers: { range: 'bytes=0-9', 'accept-encoding': 'identity' } })
        statuses.add(one.status)
        await one.bytes()
      }
      expect([...statuses]).toEqual([206])
    } finally {
      nginx.kill()
      await nginx.exited
    }
  }, 60_000)
})

describeWith(['wrk'], 'wrk', () => {
  test('sees no error at 50 connections', async () => {
    using small = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello, tunnel') })
    await using other = await startTunnel({ port: small.port! })
    const { out } = await run(
      'wrk',
      '-t1',
      '-c50',
      '-d1s',
      '-H',
      `Host: ${other.host}`,
      `http://127.0.0.1:${other.port}/`,
    )
    // More than one on each.
    expect(Number(/(\d+) requests in/.exec(out)?.[1])).toBeGreaterThan(100)
    expect(out).not.toContain('Socket errors')
    expect(out).not.toContain('Non-2xx')
  })
})
