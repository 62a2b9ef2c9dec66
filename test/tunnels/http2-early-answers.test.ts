// Answers that come before an upload is complete reach visitors of HTTP/2: those of the app, and those of the server.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { MAX_DROPPED_BYTES, QUIET_PERIODS, STREAM_WINDOW_BYTES } from '../../src/http2/server-connection.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import { next } from '../support/events.ts'
import { frame } from '../support/h2-frames.ts'
import { get, H2Peer, head, post } from '../support/h2-peer.ts'
import { type Http2Site, startHttp2Site } from '../support/http2-site.ts'
import { describeWith, testWith } from '../support/needs.ts'
import { folder, run } from '../support/programs.ts'
import { RawOrigin } from '../support/raw.ts'

const NO_ERROR = 0
const PROTOCOL_ERROR = 1
const UPLOAD_BYTES = 30_000_000
const TRIES = 12
const LONG_BYTES = 3_000_000

/** Answers 413 as soon as a head is there, and lets the rest come. */
function startRefusingApp(): { readonly port: number } & Disposable {
  interface Data {
    text: string
    unsent?: Buffer
  }
  const flush = (socket: Bun.Socket<Data>): void => {
    const { unsent } = socket.data
    if (unsent !== undefined) socket.data.unsent = unsent.subarray(socket.write(unsent))
  }
  const app = Bun.listen<Data>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        socket.data = { text: '' }
      },
      drain: flush,
      data(socket, bytes) {
        if (socket.data.text.includes('\r\n\r\n')) return
        socket.data.text += bytes.toString('latin1')
        if (!socket.data.text.includes('\r\n\r\n')) return
        if (socket.data.text.includes('/long')) {
          socket.data.unsent = Buffer.concat([
            Buffer.from(
              `HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: ${LONG_BYTES}\r\n\r\n`,
            ),
            Buffer.alloc(LONG_BYTES, 'e'),
          ])
          return flush(socket)
        }
        const isTrailed = socket.data.text.includes('/trailers')
        socket.write(
          isTrailed
            ? 'HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\nTrailer: X-Why\r\n\r\n7\r\ntoo big\r\n0\r\nX-Why: size\r\n\r\n'
            : 'HTTP/1.1 413 Too Large\r\nContent-Length: 7\r\n\r\ntoo big',
        )
      },
    },
  })
  return { port: app.port, [Symbol.dispose]: () => app.stop(true) }
}

/** What refuses an upload, and where. */
const KINDS = [
  ['the app', 413, 'app', '/'],
  ['the app, with trailers', 413, 'app', '/trailers'],
  ['the app, with a page of 3 MB', 413, 'app', '/long'],
  ['a guard', 401, 'guarded', '/'],
  ['the limit of a body', 413, 'limited', '/'],
  ['an unknown name', 404, 'nothing', '/'],
] as const

const app = startRefusingApp()
let site: Http2Site
let limited: Http2Site
let files: Awaited<ReturnType<typeof folder>>

beforeAll(async () => {
  site = await startHttp2Site(app.port, { server: { guarding: guarding({}) } })
  await site.client.http({
    subdomain: 'guarded',
    host: '127.0.0.1',
    port: app.port,
    guard: { password: 'secret' },
  })
  limited = await startHttp2Site(app.port, {
    name: 'limited',
    server: { limits: { maxBodyBytes: 1_000_000 } },
  })
  files = await folder('early-answers')
  await Bun.write(join(files.path, 'upload'), new Uint8Array(UPLOAD_BYTES))
})

afterAll(async () => {
  await site[Symbol.asyncDispose]()
  await limited[Symbol.asyncDispose]()
  app[Symbol.dispose]()
  await files[Symbol.asyncDispose]()
})

const at = (name: string): string => {
  const { port } = name === 'limited' ? limited : site
  return `https://${name}.localhost:${port}`
}

describeWith(['curl'], 'curl reads the status', () => {
  const curl = async (url: string, ...more: readonly string[]) => {
    const path = new URL(url).pathname
    const upload = ['--data-binary', `@${join(files.path, 'upload')}`]
    const words = ['curl', '-sk', '--http2', '-m', '10', '-o', '/dev/null', ...upload, ...more]
    const seen = (
      await run([...words, '-w', '%{http_version} %{http_code} %{exitcode} %{size_download}', url])
    ).out
    return seen.replace(/ \d+$/, size =>
      path === '/long' && Number(size) !== LONG_BYTES ? ` cut at${size}` : '',
    )
  }

  test.each(KINDS)(
    'of %s',
    async (_, status, name, path) => {
      for (let count = 0; count < TRIES; count++)
        expect(await curl(at(name) + path, '-H', 'Expect:')).toBe(`2 ${status} 0`)
      expect(await curl(at(name) + path, '-H', 'Expect: 100-continue')).toBe(`2 ${status} 0`)
      expect(await curl(at(name) + path, '-H', 'Expect:', '-H', 'Transfer-Encoding: chunked')).toBe(
        `2 ${status} 0`,
      )
      expect(await curl(at(name) + path, '-H', 'Expect:', '--http1.1')).toBe(`1.1 ${status} 0`)
    },
    60_000,
  )
})

describeWith(['node'], "Node's http2 reads the answer, and closes the stream", () => {
  const SCRIPT = `import { connect } from 'node:http2'
const [, , at, path, tries] = process.argv
const seen = []
for (let count = 0; count < Number(tries); count++) {
  const session = connect(at.replace(/\\/\\/[\\w.]+/, '//127.0.0.1'), { rejectUnauthorized: false })
  session.on('error', () => {})
  const stream = session.request({ ':method': 'POST', ':path': path, ':authority': at.slice(8) })
  let status = 0
  let bytes = 0
  stream.on('error', () => {})
  stream.on('response', head => { status = head[':status'] })
  stream.on('data', piece => { bytes += piece.length })
  const piece = Buffer.alloc(65536)
  const upload = () => { while (!stream.destroyed && !stream.writableEnded) if (!stream.write(piece)) return void stream.once('drain', upload) }
  upload()
  const timer = setTimeout(() => stream.destroy(), 4000)
  await new Promise(resolve => stream.once('close', resolve))
  seen.push([status, bytes > 0, stream.rstCode, timer._destroyed])
  clearTimeout(timer)
  session.close()
}
console.log(JSON.stringify(seen))`

  test.each(KINDS)(
    'of %s',
    async (_, status, name, path) => {
      const script = join(files.path, 'visitor.mjs')
      await Bun.write(script, SCRIPT)
      const { out } = await run(['node', script, at(name), path, `${TRIES}`])
      expect(JSON.parse(out)).toEqual(Array.from({ length: TRIES }, () => [status, true, NO_ERROR, false]))
    },
    60_000,
  )
})

testWith(
  ['git'],
  'git says that a push is too large',
  async () => {
    const repository = join(files.path, 'repository')
    const git = (...words: readonly string[]) =>
      run(['git', '-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b', ...words])
    await run(['git', 'init', '-q', '-b', 'main', repository])
    await Bun.write(join(repository, 'large'), crypto.getRandomValues(new Uint8Array(65_536)))
    for (let part = 0; part < 16; part++) {
      const bytes = new Uint8Array(262_144)
      for (let from = 0; from < bytes.length; from += 65_536)
        crypto.getRandomValues(bytes.subarray(from, from + 65_536))
      await Bun.write(join(repository, `part${part}`), bytes)
    }
    await git('add', '.')
    await git('commit', '-qm', 'large')
    using backend = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        const { pathname } = new URL(request.url)
        if (pathname.endsWith('/git-receive-pack')) {
          // In front of a large push git asks with an empty one.
          const isProbe = request.headers.get('content-length') === '4'
          return isProbe ? new Response('') : new Response('too large', { status: 413 })
        }
        const flush = '0000'
        const service = '001f# service=git-receive-pack\n'
        const ref = `${'0'.repeat(40)} capabilities^{}\0report-status\n`
        const line = (ref.length + 4).toString(16).padStart(4, '0') + ref
        return new Response(service + flush + line + flush, {
          headers: { 'content-type': 'application/x-git-receive-pack-advertisement' },
        })
      },
    })
    await using gits = await startHttp2Site(backend.port ?? 0, { name: 'git' })
    const url = `https://git.localhost:${gits.port}/repository.git`
    for (let count = 0; count < 3; count++) {
      const pushed = await git('-c', 'http.sslVerify=false', '-c', 'http.version=HTTP/2', 'push', url, 'main')
      expect(pushed.err).toContain('413')
    }
  },
  60_000,
)

/** Sends the body of stream 1, as its window allows. */
function uploading(peer: H2Peer): (bytes: number, isLast?: boolean) => Promise<void> {
  const piece = 16_384
  let sent = 0
  let granted = STREAM_WINDOW_BYTES
  let counted = 0
  /** Adds what was granted since the last time. */
  const grow = (): number => {
    const updates = peer.seen.of(8, 1)
    for (; counted < updates.length; counted++) granted += updates[counted]!.payload.readUInt32BE(0)
    return granted
  }
  return async (bytes, isLast = false) => {
    for (const end = sent + bytes; sent < end; sent += piece) {
      if (sent + piece > granted) await peer.when(() => sent + piece <= grow(), 'room for the upload')
      peer.send(frame(0, isLast && sent + piece >= end ? 1 : 0, 1, new Uint8Array(piece)))
    }
  }
}

test('the stream is reset once the visitor has the answer, and sends nothing for some periods', async () => {
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, post(site.host), false))
  await peer.answered(1)
  const upload = uploading(peer)
  let sent = 0
  // curl 7.88 reads as long as frames come, with all of its body unsent: replies to PINGs say nothing of that.
  for (let count = 1; count <= 2 + QUIET_PERIODS; count++) {
    await peer.when(seen => seen.of(6).length === count, 'the ping')
    if (count <= 2) await upload(16_384)
    if (count <= 2) sent = performance.now()
    expect(peer.seen.resets).toEqual({})
    peer.send(frame(6, 1, 0, [...peer.seen.of(6).at(-1)!.payload]))
  }
  await peer.when(({ resets }) => 1 in resets, 'the reset')
  expect(performance.now() - sent).toBeGreaterThan(700)
  expect(peer.seen.resets).toEqual({ 1: NO_ERROR })
  peer.send(head(3, get('nothing.localhost')))
  expect((await peer.answered(3)).field(3, ':status')).toBe('404')
})

test('a visitor that goes on sending may end its request: what comes is dropped', async () => {
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, post(site.host), false))
  await peer.answered(1)
  const upload = uploading(peer)
  await upload(MAX_DROPPED_BYTES / 2, true)
  peer.send(head(3, get('nothing.localhost')))
  expect((await peer.answered(3)).field(3, ':status')).toBe('404')
  expect(peer.seen.resets).toEqual({})
})

test('it is reset where it goes on for too long', async () => {
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, post(site.host), false))
  await peer.answered(1)
  const upload = uploading(peer)
  await upload(MAX_DROPPED_BYTES)
  await peer.when(({ resets }) => 1 in resets, 'the reset')
  expect(peer.seen.resets).toEqual({ 1: NO_ERROR })
})

test('a visitor that acknowledges nothing has five seconds', async () => {
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, post(site.host), false))
  await peer.answered(1)
  const since = performance.now()
  await peer.when(({ resets }) => 1 in resets, 'the reset')
  expect(performance.now() - since).toBeGreaterThan(4_000)
  expect(peer.seen.resets).toEqual({ 1: NO_ERROR })
}, 60_000)

test('a visitor that ends its request itself is not reset', async () => {
  await using peer = await H2Peer.connect(site.port)
  const reported = next(site.server, 'request')
  peer.send(head(1, post(site.host), false))
  await peer.answered(1)
  await reported
  peer.send(frame(0, 1, 1, new Uint8Array(100)), head(3, get('nothing.localhost')))
  await peer.answered(3)
  for (const { payload } of peer.seen.of(6)) peer.send(frame(6, 1, 0, [...payload]))
  peer.send(head(5, get('nothing.localhost')))
  await peer.answered(5)
  expect(peer.seen.resets).toEqual({})
})

test('an upload that ends short behind the final head is over, and its answer goes on', async () => {
  using origin = new RawOrigin()
  await using short = await startHttp2Site(origin.port, { name: 'short' })
  await using peer = await H2Peer.connect(short.port)
  const upload = (id: number) => {
    const fields = [...post(short.host), ['content-length', '100'] as [string, string]]
    peer.send(head(id, fields, false), frame(0, 0, id, new Uint8Array(10)))
  }
  upload(1)
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 413 Too Large\r\nContent-Length: 10\r\n\r\nhello')
  await peer.when(seen => seen.body(1).length === 5, 'half of the answer')
  peer.send(frame(0, 1, 1, []))
  // What the frame does is done once the PING behind it is answered.
  peer.send(frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]))
  await peer.when(seen => seen.of(6).length === 1, 'the answer to a ping')
  await app.send('world')
  expect((await peer.answered(1)).body(1).toString()).toBe('helloworld')
  // The app waits for 90 bytes: nobody else's request may be taken for them.
  await app.closed()
  // In front of the head it is a fault.
  upload(3)
  await (await origin.accept()).until('\r\n\r\n')
  peer.send(frame(0, 1, 3, []))
  await peer.when(({ resets }) => 3 in resets, 'the reset')
  expect(peer.seen.resets).toEqual({ 3: PROTOCOL_ERROR })
})
