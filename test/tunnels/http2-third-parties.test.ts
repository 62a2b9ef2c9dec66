// Other people's clients of HTTP/2 through a tunnel, and h2spec, which knows the rules. Those not installed are skipped.
// h2spec takes 13 s: it waits for answers that may not come.

import { expect } from 'bun:test'
import { Browser } from '../support/browser.ts'
import { startApp, startHttp2Site, startPatientApp } from '../support/http2-site.ts'
import { testWith } from '../support/needs.ts'
import { folder, run } from '../support/programs.ts'

/** With Bun's own TLS, and where the server reads hellos before TLS begins. */
for (const readsHellos of [false, true])
  testWith(
    ['curl'],
    `curl chooses HTTP/2, or not${readsHellos ? ', where hellos are read' : ''}`,
    async () => {
      using app = startApp()
      await using site = await startHttp2Site(app.port, { readsHellos })
      const curl = (path: string, ...args: readonly string[]) =>
        run([
          'curl',
          '-sk',
          '--max-time',
          '10',
          '--connect-to',
          `::127.0.0.1:${site.port}`,
          ...args,
          `https://${site.host}${path}`,
        ])
      const version = ['-o', '/dev/null', '-w', '%{http_version} %{http_code}']
      expect((await curl('/', ...version)).out).toBe('2 200')
      expect((await curl('/', '--http1.1', ...version)).out).toBe('1.1 200')
      expect((await curl('/', '--no-alpn', ...version)).out).toBe('1.1 200')
      expect((await curl('/', '--tls-max', '1.2', ...version)).out).toBe('2 200')
      expect((await curl('/', '-I', ...version)).out).toBe('2 200')
      expect((await curl('/echo', '-d', 'a=b')).out).toBe('a=b')
      const large = 'x'.repeat(1_500_000)
      await using home = await folder('http2')
      await Bun.write(`${home.path}/body`, large)
      expect((await curl('/echo', '-T', `${home.path}/body`)).out).toBe(large)
      expect((await curl('/echo', '-T', `${home.path}/body`, '-H', 'content-length:')).out).toBe(large)
      expect((await curl('/big')).out).toHaveLength(1_048_576)
      await site.server.reload({
        ...(readsHellos
          ? { certificates: { find: () => undefined } }
          : {
              tls: {
                cert: (await import('../support/tls.ts')).TEST_CERT,
                key: (await import('../support/tls.ts')).TEST_KEY,
              },
            }),
        http2: false,
      })
      if (!readsHellos) expect((await curl('/', ...version)).out).toBe('1.1 200')
    },
  )

testWith(['nghttp'], 'nghttp gets a hundred answers on one connection, in any windows', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port)
  const at = `https://127.0.0.1:${site.port}`
  for (const flags of [[], ['-w', '10', '-W', '12'], ['--max-concurrent-streams=7']]) {
    const { out } = await run([
      'nghttp',
      '-ns',
      '-m',
      '50',
      ...flags,
      '-H',
      `:authority: ${site.host}`,
      `${at}/big`,
      `${at}/`,
    ])
    const answers = out.split('\n').filter(line => /\s200\s/.test(line))
    expect([flags, answers.length]).toEqual([flags, 100])
  }
})

testWith(
  ['node'],
  'node:http2 and undici: answers, uploads, a WebSocket, a request that is cancelled',
  async () => {
    using app = startApp()
    await using site = await startHttp2Site(app.port)
    const script = `${import.meta.dir}/../support/http2-visitor.mjs`
    const { out, err } = await run(['node', script, String(site.port), site.host])
    expect([err, JSON.parse(out || 'null')]).toEqual([
      '',
      {
        hello: { status: 200, bytes: 6, first: 'hello\n' },
        big: true,
        upload: { status: 200, bytes: 3_000_000, first: 'x'.repeat(20) },
        webSocket: [200, '81026869'],
        byUndici: Array.from({ length: 20 }, (_, index) => `200 number ${index}`),
      },
    ])
  },
)

testWith(
  ['go'],
  'Go: twenty uploads of unknown length at once',
  async () => {
    using app = startApp()
    await using site = await startHttp2Site(app.port)
    await using home = await folder('http2')
    const program = `${home.path}/visitor`
    const built = Bun.spawn(
      ['go', 'build', '-o', program, `${import.meta.dir}/../support/http2-visitor.go`],
      { stderr: 'pipe' },
    )
    expect([await built.stderr.text(), await built.exited]).toEqual(['', 0])
    const { out } = await run([program, String(site.port), site.host])
    expect(out).toBe('HTTP/2.0 200 true <nil>\n'.repeat(20))
  },
  180_000,
)

testWith(['chromium'], 'Chromium: pages and WebSockets on one connection', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port)
  await using browser = await Browser.start(['--ignore-certificate-errors'])
  await browser.open(`https://${site.host}/page`)
  const seen = await browser.run(`(async () => {
    const big = await Promise.all(Array.from({ length: 20 }, async () => (await (await fetch('/big')).arrayBuffer()).byteLength))
    const echoed = await (await fetch('/echo', { method: 'POST', body: 'x'.repeat(500000) })).text()
    const socket = new WebSocket('wss://' + location.host + '/ws')
    await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject })
    const answer = new Promise(resolve => { socket.onmessage = ({ data }) => resolve(data) })
    socket.send('hi')
    const protocols = performance.getEntriesByType('resource').map(({ nextHopProtocol }) => nextHopProtocol)
    return JSON.stringify([big.every(size => size === 1048576), echoed.length, await answer, [...new Set(protocols)]])
  })()`)
  expect(seen).toBe(JSON.stringify([true, 500_000, 'hi', ['h2']]))
})

testWith(['h2spec'], 'h2spec in strict mode has nothing to say', async () => {
  using app = startPatientApp()
  // It asks for the host that it connects to: 127.0.0.1 is the tunnel 127 below 0.0.1.
  await using site = await startHttp2Site(app.port, {
    name: '127',
    server: { domains: ['localhost', '0.0.1'] },
  })
  const flags = ['-h', '127.0.0.1', '-p', String(site.port), '-t', '-k', '-S', '-o', '5']
  let verdict: readonly unknown[] = []
  // It waits for some answers by the clock: where a machine stands still meanwhile, it is asked again.
  for (let attempt = 0; attempt < 3 && verdict[0] !== ''; attempt++) {
    const { out } = await run(['h2spec', ...flags])
    verdict = [out.split('Failures:')[1] ?? '', /(\d+) tests, (\d+) passed/.exec(out)?.slice(1)]
  }
  expect(verdict).toEqual(['', ['146', '146']])
})

/**
 * They send on behind a head, and wait for an error, or for the answer to their PING: the server's own page is complete by then, and
 * its PING, which asks whether the page has arrived, passes for what they wait for.
 */
const ANSWERED_EARLIER = [
  'Sends a RST_STREAM frame',
  'Sends a RST_STREAM frame with unknown error code',
  'Sends a HEADERS frame with the "content-length" header field which does not equal the DATA frame payload length',
  'Sends a HEADERS frame with the "content-length" header field which does not equal the sum of the multiple DATA frames payload length',
]

const WHOLE_ANSWER = /^(?:DATA Frame \(length:\d+, flags:0x01|PING Frame \(+length:8, flags:0x00)/

testWith(
  ['h2spec'],
  'h2spec at the control host: what fails there saw the whole answer already',
  async () => {
    using app = startPatientApp()
    await using site = await startHttp2Site(app.port)
    const flags = ['-h', 'localhost', '-p', String(site.port), '-t', '-k', '-S', '-o', '2']
    let others: readonly string[] = ['not asked yet']
    for (let attempt = 0; attempt < 3 && others.length > 0; attempt++) {
      const { out } = await run(['h2spec', ...flags])
      expect(out).toContain('146 tests')
      const failed = [...out.split('Failures:')[1]!.matchAll(/× \d+: (.+)\n[^×]*?Actual: (.+)/g)]
      others = failed
        .filter(([, what = '', seen = '']) => !ANSWERED_EARLIER.includes(what) || !WHOLE_ANSWER.test(seen))
        .map(([, what, seen]) => `${what}: ${seen}`)
    }
    expect(others).toEqual([])
  },
  90_000,
)
