// A stranger's request as a command, pasted into terminals that take each byte for a key: it is sent again, and nothing else runs.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { InspectorApi } from '../../support/inspector.ts'
import { testWith } from '../../support/needs.ts'
import { folder } from '../../support/programs.ts'
import { rawDial } from '../../support/raw.ts'
import { type LiveTunnel, startTunnel } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

interface Seen {
  readonly url: string
  readonly own: string | null
  readonly body: string
}

const seen: Seen[] = []
let arrived = Promise.withResolvers<void>()
let app: Bun.Server<undefined>
let tunnel: LiveTunnel
let api: InspectorApi

beforeAll(async () => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const body = Buffer.from(await request.arrayBuffer()).toString('latin1')
      seen.push({ url: new URL(request.url).pathname, own: request.headers.get('x-own'), body })
      arrived.resolve()
      return new Response('ok')
    },
  })
  tunnel = await startTunnel({ port: app.port ?? 0, host: '127.0.0.1', inspect: true })
  api = new InspectorApi(tunnel.client)
})
afterAll(async () => {
  await tunnel[Symbol.asyncDispose]()
  await app.stop(true)
})

const RUN = '\ntouch PWNED\n'
/** Quotes where a terminal cuts a line. */
const LONG = [4_080, 4_090, 4_093, 4_094, 4_095].map(length => `${'a'.repeat(length)}';touch PWNED;'`)
const BODIES = [
  `{"a":1}\x03${RUN}`,
  `\x1b[201~${RUN}`,
  `\x04${RUN}\x1a${RUN}\x1c${RUN}\x15\x17${RUN}`,
  `a\r\ntouch PWNED\r\n`,
  `a\n!touch${RUN}^touch^echo`,
  `\u009b201~${RUN}\u202e\u2028`,
  `'${RUN}'${RUN}`,
  `$(touch PWNED)\`touch PWNED\`"${RUN}`,
  ...LONG.map(text => text + RUN),
  `plain\ntext with "quotes" and 'more'\n`,
]
const VALUES = ["x';touch PWNED;'", '\xc2\x9b201~ %s \\n', '\xe2\x80\xae\xff', 'a\ttouch PWNED\t', ...LONG]

/** As a person does: line by line, as fast as the shell takes them. */
async function paste(shell: readonly string[], cwd: string, text: string): Promise<void> {
  let shown = ''
  let echoed = Promise.withResolvers<void>()
  const child = Bun.spawn([...shell], {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, HISTFILE: '/dev/null', TERM: 'dumb' },
    terminal: {
      cols: 200,
      rows: 50,
      data(_terminal, bytes) {
        shown += Buffer.from(bytes).toString('latin1')
        echoed.resolve()
      },
    },
  })
  try {
    for (const line of [...text.trimEnd().split('\n'), 'exit']) {
      const before = shown.split('\n').length
      child.terminal?.write(`${line}\n`)
      while (shown.split('\n').length === before) {
        echoed = Promise.withResolvers()
        await within(echoed.promise, 'the echo')
      }
    }
    await within(child.exited, `the end of the shell: ${JSON.stringify(shown.slice(-500))}`)
  } finally {
    child.kill('SIGKILL')
  }
}

async function visit(lines: readonly string[], body: string): Promise<string> {
  const after = (await api.rows('?limit=1'))[0]?.id ?? '0'
  const visitor = await rawDial(tunnel.port)
  const bytes = Buffer.from(body)
  const head = [
    'POST /hook HTTP/1.1',
    `Host: ${tunnel.host}`,
    ...lines,
    `Content-Length: ${bytes.length}`,
    '',
    '',
  ]
  await visitor.send(Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), bytes]))
  await visitor.until('ok')
  visitor.socket.terminate()
  const { id } = await api.ended('path:/hook', after)
  return (await api.ask(`exchanges/${id}/as/curl`)).text
}

for (const shell of [
  ['dash', '-i'],
  ['bash', '--noediting', '--norc', '-i'],
])
  testWith(
    [shell[0]!, 'curl'],
    `in ${shell.join(' ')}`,
    async () => {
      await using home = await folder('paste')
      const cases = [
        ...BODIES.map(body => [[], body] as const),
        ...VALUES.map(own => [[`X-Own: ${own}`], ''] as const),
      ]
      for (const [lines, body] of cases) {
        const text = await visit(lines, body)
        expect(text).not.toMatch(/[^\n -~]/)
        const [first] = seen.splice(0)
        arrived = Promise.withResolvers()
        await paste(shell, home.path, text)
        await within(arrived.promise, `the request of ${text.slice(0, 300)}`)
        expect(seen.splice(0)).toEqual([first!])
        expect([text.slice(0, 300), await readdir(home.path)]).toEqual([text.slice(0, 300), []])
      }
    },
    60_000,
  )

test('calls and tests have no character that a terminal or a reader takes for another one', async () => {
  await visit(['X-Own: \xe2\x80\xae'], '{"a":"\x03\x7f\u009b\u202e\u2028\u{e0041}"}')
  seen.length = 0
  const [row] = await api.rows()
  for (const format of ['fetch', 'bun-test']) {
    const { text } = await api.ask(`exchanges/${row?.id}/as/${format}`)
    expect(text).not.toMatch(/[^\n -~\xa0-\xff]/)
    expect(text).toContain(String.raw`\u0003\u{7f}\u{9b}\u{202e}\u{2028}\u{e0041}`)
  }
})
