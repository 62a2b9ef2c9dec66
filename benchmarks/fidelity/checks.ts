// The conformance checks: what must come through a tunnel, each with its source.

import { join } from 'node:path'
import { must, type Scene, STEP_MS, type Wire } from './scene.ts'

export interface Check {
  readonly id: string
  readonly category: string
  readonly what: string
  /** RFC and section, or the public suite whose cases it follows. `optional`: it allows both, so the check does not count. */
  readonly source: string
  /** Only a tunnel that reads HTTP can do it: of others it is not asked. */
  readonly needsHttp?: true
  run(scene: Scene): Promise<void>
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const checks: Check[] = []
/** `heading`: category, id, source and what, with ` | ` in between. */
function check(heading: string, run: Check['run'], needsHttp?: true): void {
  const [category, id, source, what] = heading.split(' | ') as [string, string, string, string]
  checks.push({ category, id, source, what, run, ...(needsHttp && { needsHttp }) })
}

/** Texts, and patterns between slashes. */
type Wanted = readonly (string | RegExp)[]

/** The request line and lines must reach the app as they are. */
function arrives(line: string, lines: readonly string[], wanted: Wanted): Check['run'] {
  return async scene => {
    const { visitor, app, head } = await scene.arrive(scene.request(line, lines))
    for (const one of wanted)
      must(typeof one === 'string' ? head.includes(one) : one.test(head), `the app got no ${String(one)}`)
    app.send(OK)
    await visitor.has('\r\n\r\nok')
  }
}

/** The answer must reach the visitor with these parts. */
function returns(answer: string, wanted: Wanted, method = 'GET', isLast = false): Check['run'] {
  return async scene => {
    const [verb, ...lines] = method.split('~')
    const { visitor, app } = await scene.arrive(scene.request(`${verb} /`, lines))
    app.send(answer)
    if (isLast) app.socket.end()
    for (const one of wanted) {
      await visitor.until(String(one), ({ text }) =>
        typeof one === 'string' ? text.includes(one) : one.test(text),
      )
    }
    must(!/^HTTP\/1.1 5/m.test(visitor.text), 'the visitor got an error of the tunnel')
  }
}

// ── Requests ───────────────────────────────────────────────────────────────────────────────────────────────────
check(
  'requests | large | RFC 9110 5.4 | a header of 12 KB reaches the app',
  arrives('GET /', [`X-Large: ${'a'.repeat(12_000)}`], ['a'.repeat(12_000)]),
)
check('requests | body | RFC 9112 6.2 | a body by length arrives whole', async scene => {
  const { visitor, app } = await scene.arrive(
    scene.request('POST /', ['Content-Length: 70000'], 'x'.repeat(70_000)),
  )
  await app.until('70,000 bytes', ({ text }) => text.length === 70_000)
  app.send(OK)
  await visitor.has('ok')
})
check('requests | chunked | RFC 9112 7.1 | a chunked body arrives, its bytes unchanged', async scene => {
  const { visitor, app, head } = await scene.arrive(
    scene.request('POST /', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n'),
  )
  await app.until(
    'the body',
    ({ text }) => text.includes('world') && (/content-length/i.test(head) || text.includes('0\r\n\r\n')),
  )
  app.send(OK)
  await visitor.has('ok')
})
check('requests | trailers | RFC 9110 6.5.1, optional | trailers of a request reach the app', async scene => {
  const { app } = await scene.arrive(
    scene.request(
      'POST /',
      ['Transfer-Encoding: chunked', 'Trailer: X-Sum'],
      '2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n',
    ),
  )
  await app.until('the trailer', ({ text }) => /x-sum: 7/i.test(text))
})
check('requests | streamed | RFC 9110 7.6, optional | a body is forwarded while it arrives', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('POST /', ['Content-Length: 10'], 'first'))
  await app.has('first')
  visitor.send('later')
  await app.has('later')
})
check('requests | expect | RFC 9110 10.1.1 | 100 (Continue) comes once, before the body', async scene => {
  const visitor = await scene.visitor()
  visitor.send(scene.request('POST /', ['Content-Length: 4', 'Expect: 100-continue']))
  const app = await scene.app.next()
  await app.head()
  app.send('HTTP/1.1 100 Continue\r\n\r\n')
  await visitor.has('100 Continue')
  visitor.send('body')
  await app.has('body')
  app.send(OK)
  await visitor.has('ok')
  must(visitor.text.split('100 Continue').length === 2, '100 (Continue) came twice')
})
check('requests | pipelined | RFC 9112 9.3.2 | pipelined requests are answered in order', async scene => {
  const visitor = await scene.visitor()
  visitor.send(scene.request('GET /1') + scene.request('GET /2'))
  const first = await scene.app.next()
  must((await first.head()).startsWith('GET /1'), 'the second came first')
  first.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/1')
  // The second comes on the same connection, or on another one.
  const second = await Promise.any([first.has('GET /2').then(() => first), scene.app.next()])
  await second.head()
  second.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n/2')
  await visitor.until(
    'both',
    ({ text }) => text.indexOf('/1') >= 0 && text.indexOf('/2') > text.indexOf('/1'),
  )
})
check(
  'requests | early | RFC 9112 9.5 | an answer before the end of the body reaches the visitor',
  async scene => {
    const { visitor, app } = await scene.arrive(
      scene.request('POST /', ['Content-Length: 1000000'], 'x'.repeat(10_000)),
    )
    app.send('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig')
    app.socket.end()
    await visitor.has('413')
  },
)

// ── Answers ────────────────────────────────────────────────────────────────────────────────────────────────────
check('answers | truncated | RFC 9112 8 | an answer that was cut never looks complete', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /'))
  app.send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart')
  await visitor.has('part').catch(() => {})
  app.socket.destroy()
  await visitor.over()
  must(
    !/content-length: 4\b/i.test(visitor.text) && !visitor.text.endsWith('0\r\n\r\n'),
    'the visitor took it for complete',
  )
})
check(
  'answers | truncated-chunks | RFC 9112 8 | a chunked answer that was cut never looks complete',
  async scene => {
    const { visitor, app } = await scene.arrive(scene.request('GET /'))
    app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n')
    await visitor.has('part').catch(() => {})
    app.socket.destroy()
    await visitor.over()
    must(
      !/content-length: 4\b/i.test(visitor.text) && !visitor.text.endsWith('0\r\n\r\n'),
      'the visitor took it for complete',
    )
  },
)

// ── Streaming ──────────────────────────────────────────────────────────────────────────────────────────────────
check(
  'streaming | first-byte | RFC 9112 7 | the first bytes come before the last are written',
  async scene => {
    const { visitor, app } = await scene.arrive(scene.request('GET /'))
    app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n')
    await visitor.has('early')
    app.send('4\r\nlate\r\n0\r\n\r\n')
    await visitor.has('late')
  },
)
check('streaming | events | WHATWG HTML 9.2 | server-sent events come one by one', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /', ['Accept: text/event-stream']))
  app.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n')
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    app.send(event)
    await visitor.has(event)
  }
})
check(
  'streaming | both-ways | RFC 9110 7.6, optional | an answer begins while the request goes on',
  async scene => {
    const { visitor, app } = await scene.arrive(
      scene.request('POST /', ['Transfer-Encoding: chunked'], '3\r\none\r\n'),
    )
    await app.has('one')
    app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nONE\r\n')
    await visitor.has('ONE')
    visitor.send('3\r\ntwo\r\n')
    await app.has('two')
  },
)
check('streaming | visitor-gone | RFC 9110 7.6 | the app learns that the visitor left', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /'))
  app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n')
  await visitor.has('x')
  visitor.reset()
  // Some notice only when they write again.
  const writing = setInterval(() => app.state === 'open' && app.send('1\r\nx\r\n'), 50)
  await app.over().finally(() => clearInterval(writing))
})
check('streaming | slow-reader | RFC 9110 7.6 | 20 MB to a visitor that waits arrive whole', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /'))
  const size = 20_000_000
  let count = 0
  visitor.socket.removeAllListeners('data')
  visitor.socket.on('data', piece => {
    count += piece.length
  })
  visitor.socket.pause()
  app.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
  app.send(new Uint8Array(size))
  await Bun.sleep(300)
  visitor.socket.resume()
  await visitor.until('20 MB', () => count > size, STEP_MS * 4)
})

// ── Framing that attackers use ─────────────────────────────────────────────────────────────────────────────────
/** A tunnel that reads HTTP must refuse it, or the app must at least not see two requests. */
function smuggled(lines: readonly string[], before: string): Check['run'] {
  return async scene => {
    const visitor = await scene.visitor()
    visitor.send(scene.request('POST /', lines, `${before}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`))
    const app = await scene.app.next(700).catch(() => null)
    if (app) {
      app.send(OK)
      await Bun.sleep(150)
      must(!app.text.includes('GET /smuggled'), 'the app saw the smuggled request')
      return
    }
    const refusal = / (400|411|413|431|501|502)\b/
    await visitor.until('a refusal', ({ text, state }) => refusal.test(text) || state !== 'open')
  }
}

check(
  'smuggling | other-answer | RFC 9112 9.3 | bytes behind an answer never reach another visitor',
  async scene => {
    const { visitor, app } = await scene.arrive(scene.request('GET /1'))
    app.send(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON`)
    await visitor.has('ok')
    const other = await scene.visitor()
    other.send(scene.request('GET /2'))
    const next = await scene.app.next(700).catch(() => app)
    next.send(OK)
    await other.has('ok').catch(() => {})
    must(!other.text.includes('POISON'), 'another visitor got it')
  },
  true,
)

// ── Forwarding ─────────────────────────────────────────────────────────────────────────────────────────────────
check('forwarding | host | RFC 9110 7.2 | Host is the one that the visitor sent', async scene => {
  const sent = /Host: (.*)\r\n/.exec(scene.request('GET /'))![1]!
  await arrives('GET /', [], [new RegExp(`host: ${sent}\r\n`, 'i')])(scene)
})
check(
  "forwarding | for | RFC 7239 5.2, optional | the app gets the visitor's address",
  arrives('GET /', [], [/x-forwarded-for: |forwarded: .*for=/i]),
  true,
)
check(
  'forwarding | forged | RFC 7239 8.1 | a forged address is not the only one told',
  async scene => {
    const { head } = await scene.arrive(scene.request('GET /', ['X-Forwarded-For: 6.6.6.6']))
    must(!/x-forwarded-for: 6\.6\.6\.6\r\n/i.test(head), 'the app got the forged address alone')
  },
  true,
)
check(
  'forwarding | hop | RFC 9110 7.6.1 | what Connection names is not forwarded',
  async scene => {
    const { head } = await scene.arrive(scene.request('GET /', ['Connection: X-Hop', 'X-Hop: 1']))
    must(!/x-hop: 1/i.test(head), 'X-Hop reached the app')
  },
  true,
)

// ── WebSockets, by the categories of the Autobahn test suite ───────────────────────────────────────────────────
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
]
const SWITCHED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n'

async function upgraded(
  scene: Scene,
  more: readonly string[] = [],
  answer = '',
): Promise<{ visitor: Wire; app: Wire; head: string }> {
  const both = await scene.arrive(scene.request('GET /ws', [...UPGRADE, ...more]))
  both.app.send(`${SWITCHED}${answer}\r\n`)
  must((await both.visitor.head()).includes('101'), 'no 101')
  return both
}
/** Bytes each way: the visitor's are masked with zeros, so that they stay readable. */
function messages(...frames: readonly (readonly [first: number, payload: string])[]): Check['run'] {
  return async scene => {
    const { visitor, app } = await upgraded(scene)
    for (const [first, payload] of frames) {
      const length =
        payload.length > 125 ? [126, payload.length >> 8, payload.length & 255] : [payload.length]
      const head = (mask: number): string => String.fromCharCode(first, length[0]! | mask, ...length.slice(1))
      visitor.send(`${head(128)}\0\0\0\0${payload}`)
      await app.has(`${head(128)}`)
      await app.has(payload)
      app.send(head(0) + payload)
      await visitor.has(head(0) + payload)
      app.take()
      visitor.take()
    }
  }
}

check('websocket | close | Autobahn 7 | close codes and reasons pass both ways', async scene => {
  const { visitor, app } = await upgraded(scene)
  visitor.send('\x88\x86\0\0\0\0\x0f\xa0bye!')
  await app.has('\x0f\xa0bye!')
  app.send('\x88\x06\x0f\xa0bye!')
  await visitor.has('\x0f\xa0bye!')
  app.socket.end()
  await visitor.over()
})
check(
  'websocket | large | Autobahn 9 | messages of 50 and 60 KB',
  messages(
    [0x81, 'x'.repeat(60_000)],
    ...Array.from({ length: 10 }, () => [0x82, 'm'.repeat(50_000)] as const),
  ),
)
check('websocket | compression | Autobahn 12 | permessage-deflate is negotiated by the ends', async scene => {
  const { visitor, app, head } = await upgraded(
    scene,
    ['Sec-WebSocket-Extensions: permessage-deflate'],
    'Sec-WebSocket-Extensions: permessage-deflate\r\n',
  )
  must(/permessage-deflate/i.test(head), 'the app got no offer')
  app.send('\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00')
  await visitor.has('\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00')
})
check('websocket | subprotocol | RFC 6455 1.9 | the subprotocol is chosen by the app', async scene => {
  const { head } = await upgraded(scene, ['Sec-WebSocket-Protocol: a, b'], 'Sec-WebSocket-Protocol: b\r\n')
  must(/sec-websocket-protocol: a, ?b/i.test(head), 'the app got no offer')
})
check('websocket | refused | RFC 6455 4.2.2 | an upgrade that the app refuses is refused', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /ws', UPGRADE))
  app.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
  await visitor.has('403')
})
check('websocket | gone | Autobahn 10 | the app learns that the visitor left', async scene => {
  const { visitor, app } = await upgraded(scene)
  visitor.reset()
  await app.over()
})

// ── Connections ────────────────────────────────────────────────────────────────────────────────────────────────
check('connections | keep-alive | RFC 9112 9.3 | a visitor asks twice on one connection', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /1'))
  app.send(OK)
  await visitor.has('ok')
  visitor.take()
  visitor.send(scene.request('GET /2'))
  const again = app.text.includes('/2')
    ? app
    : await Promise.any([scene.app.next(), app.has('/2').then(() => app)])
  await again.has('/2')
  again.send(OK)
  await visitor.has('ok')
})
check('connections | last | RFC 9112 9.6 | Connection: close ends it behind the answer', async scene => {
  const { visitor, app } = await scene.arrive(scene.request('GET /', ['Connection: close']))
  app.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
  app.socket.end()
  await visitor.has('ok')
  await visitor.over()
})
check('connections | http10 | RFC 9112 9.3 | HTTP/1.0 is answered, and the connection ended', async scene => {
  const visitor = await scene.visitor()
  visitor.send(scene.request('GET /').replace('HTTP/1.1', 'HTTP/1.0'))
  const app = await scene.app.next()
  await app.head()
  app.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
  app.socket.end()
  await visitor.has('ok')
  await visitor.over()
})
check(
  'connections | half-close | RFC 9293 3.6 | a visitor that ended its sending still gets its answer',
  async scene => {
    const visitor = await scene.visitor()
    visitor.send(scene.request('GET /'))
    visitor.socket.end()
    const app = await scene.app.next()
    await app.head()
    await Bun.sleep(50)
    app.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    app.socket.end()
    await visitor.has('ok')
  },
)
check(
  'connections | idle-close | RFC 9112 9.3.1 | a GET survives that the app closed an idle connection',
  async scene => {
    const { visitor, app } = await scene.arrive(scene.request('GET /1', ['Connection: keep-alive']))
    app.send(OK)
    await visitor.has('ok')
    app.socket.destroy()
    await Bun.sleep(50)
    const again = visitor.state === 'open' ? visitor : await scene.visitor()
    again.take()
    again.send(scene.request('GET /2'))
    const next = await scene.app.next()
    next.send(OK)
    await again.has('ok')
  },
  true,
)
check(
  'connections | app-down | RFC 9110 15.6.3 | an app that hangs up gives a gateway error',
  async scene => {
    const { visitor, app } = await scene.arrive(scene.request('GET /'))
    app.socket.destroy()
    await visitor.until('502 to 504', ({ text }) => / 50[234]\b/.test(text))
  },
  true,
)

/** Checks of one line each: heading, kind, and what the kind takes. `~` stands between parts, `-` for none. */
for (const line of (await Bun.file(join(import.meta.dir, 'checks.txt')).text()).trim().split('\n')) {
  const [category, id, source, what, kind, ...rest] = line.split(/ \| ?/)
  // Escapes are those of JSON.
  const fields = rest.map(
    field => JSON.parse(`"${field.replaceAll('"', '\\"').replace(/\\(?=\/)/g, '\\\\')}"`) as string,
  )
  check(
    [category, id, source, what].join(' | '),
    runOf(kind!, fields),
    kind === 'smuggled' ? true : undefined,
  )
}

function runOf(kind: string, [first = '', second = '', third = '']: readonly string[]): Check['run'] {
  const list = (text: string): readonly string[] => text.split('~').filter(one => one !== '' && one !== '-')
  const wanted = third
    .split(' ~ ')
    .map(one => (/^\/[\s\S]*\/$/.test(one) ? new RegExp(one.slice(1, -1), 'i') : one))
  if (kind === 'arrives') return arrives(first, list(second), wanted)
  if (kind === 'smuggled') return smuggled(list(first), second)
  if (kind === 'messages')
    return messages(
      ...first.split(' ~ ').map(one => [Number.parseInt(one.slice(0, 2), 16), one.slice(2)] as const),
    )
  return returns(second, wanted, first, kind === 'returns-last')
}

/** In the order of their categories. */
const CATEGORIES = ['requests', 'answers', 'streaming', 'smuggling', 'forwarding', 'websocket', 'connections']
export const CHECKS: readonly Check[] = checks.toSorted(
  (a, b) => CATEGORIES.indexOf(a.category) - CATEGORIES.indexOf(b.category),
)
