// A web fetch handler behind a byte stream: what it sees, what the visitor sees, and what happens when one of them stops.

import { expect, test } from 'bun:test'
import { type Handler, HandlerConnection, type HandlerOptions } from '../../src/handler/connection.ts'
import { BodyFramer } from '../../src/http/body.ts'
import { parseResponseHead, ResponseHead } from '../../src/http/head.ts'

const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }

/** A visitor on the other end of the stream, in memory. */
class Visitor {
  readonly connection: HandlerConnection
  readonly failures: unknown[] = []
  text = ''
  end: 'open' | 'ended' | 'cut' = 'open'
  isPaused = false
  /** Takes this many writes before it is full; then `drain` takes one more each. */
  room = Number.POSITIVE_INFINITY
  #changed = Promise.withResolvers<void>()

  constructor(handler: Handler, options: Partial<HandlerOptions> = {}) {
    const change = (): void => {
      this.#changed.resolve()
      this.#changed = Promise.withResolvers()
    }
    this.connection = new HandlerConnection(
      handler,
      {
        write: bytes => {
          expect(this.end).toBe('open')
          this.text += Buffer.from(bytes).toString('latin1')
          change()
          return --this.room > 0
        },
        end: () => {
          expect(this.end).toBe('open')
          this.end = 'ended'
          change()
        },
        terminate: () => {
          expect(this.end).toBe('open')
          this.end = 'cut'
          change()
        },
        pause: () => {
          this.isPaused = true
          change()
        },
        resume: () => {
          this.isPaused = false
          change()
        },
      },
      { failed: error => this.failures.push(error), ...options },
    )
  }

  send(text: string): void {
    this.connection.received(Buffer.from(text, 'latin1'))
  }

  async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await this.#changed.promise
  }

  /** Waits for whole answers and takes them. */
  async answers(count: number, method = 'GET'): Promise<{ head: ResponseHead; body: string }[]> {
    const taken: { head: ResponseHead; body: string }[] = []
    while (taken.length < count) {
      const bytes = Buffer.from(this.text, 'latin1')
      const head = new ResponseHead()
      const end = parseResponseHead(head, bytes, 0, bytes.length, limits, method)
      expect(end).toBeGreaterThanOrEqual(0)
      let body = ''
      const framer = new BodyFramer((piece, from, to) => {
        body += Buffer.from(piece.subarray(from, to)).toString('latin1')
      })
      framer.begin(head.body, head.contentLength)
      const bodyEnd = end > 0 ? framer.feed(bytes, end, bytes.length) : 0
      if (end > 0 && (framer.complete || (this.end === 'ended' && framer.ended()))) {
        this.text = this.text.slice(bodyEnd)
        taken.push({ head, body })
      } else await this.#changed.promise
    }
    return taken
  }

  async answer(method?: string): Promise<{ head: ResponseHead; body: string }> {
    return (await this.answers(1, method))[0]!
  }
}

/** A body of which no piece is there at once. */
function slowly(...pieces: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await new Promise(resolve => setImmediate(resolve))
      const piece = pieces.shift()
      if (piece === undefined) controller.close()
      else controller.enqueue(Buffer.from(piece))
    },
  })
}

const get = (lines = '', method = 'GET'): string => `${method} / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`

test('the handler sees method, URL and headers as they were sent', async () => {
  let seen: Request | undefined
  const visitor = new Visitor(request => {
    seen = request
    return new Response('ok')
  })
  visitor.send(
    'DELETE /x%20y?z=\xc3\xa9 HTTP/1.1\r\nHost: A.example:81\r\nX-A: 1\r\nx-a: 2\r\nX-Forwarded-Proto: https\r\n\r\n',
  )
  expect((await visitor.answer()).body).toBe('ok')
  expect(seen?.method).toBe('DELETE')
  expect(seen?.url).toBe('https://a.example:81/x%20y?z=%C3%A9')
  expect(seen?.headers.get('x-a')).toBe('1, 2')
  expect(seen?.headers.get('host')).toBe('A.example:81')
})

test('a scheme that is given is not overruled by the visitor', async () => {
  const visitor = new Visitor(request => new Response(request.url), { scheme: 'http' })
  visitor.send(get('X-Forwarded-Proto: https\r\n'))
  expect((await visitor.answer()).body).toBe('http://a/')
})

test('a body in memory leaves with its length, in one write', async () => {
  const visitor = new Visitor(() => Response.json({ a: 'x'.repeat(30_000) }))
  visitor.room = 2
  visitor.send(get())
  const { head, body } = await visitor.answer()
  expect(head.header('content-type')).toStartWith('application/json')
  expect(head.contentLength).toBe(30_008)
  expect(body.length).toBe(30_008)
  expect(visitor.room).toBe(1)
})

test('a stream leaves in chunks, each as it comes', async () => {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const visitor = new Visitor(
    () =>
      new Response(
        new ReadableStream({
          start(given) {
            controller = given
          },
        }),
      ),
  )
  visitor.send(get())
  await visitor.until(() => visitor.text.endsWith('\r\n\r\n'))
  expect(visitor.text).toContain('transfer-encoding: chunked')
  controller?.enqueue(Buffer.from('one'))
  await visitor.until(() => visitor.text.endsWith('3\r\none\r\n'))
  controller?.enqueue(Buffer.from('two'))
  await visitor.until(() => visitor.text.endsWith('3\r\ntwo\r\n'))
  controller?.close()
  expect((await visitor.answer()).body).toBe('onetwo')
})

test('a stream with a content-length keeps it', async () => {
  const visitor = new Visitor(() => new Response(slowly('he', 'llo'), { headers: { 'content-length': '5' } }))
  visitor.send(get())
  const { head, body } = await visitor.answer()
  expect([head.body, head.contentLength, body]).toEqual(['length', 5, 'hello'])
})

test('an answer longer or shorter than its content-length never looks complete', async () => {
  for (const length of ['4', '6']) {
    const visitor = new Visitor(
      () => new Response(slowly('hello'), { headers: { 'content-length': length } }),
    )
    visitor.send(get())
    await visitor.until(() => visitor.end !== 'open')
    expect(visitor.end).toBe('cut')
    expect(visitor.failures).toHaveLength(1)
  }
})

test('several cookies stay several', async () => {
  const headers = new Headers([
    ['set-cookie', 'a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT'],
    ['set-cookie', 'b=2'],
  ])
  const visitor = new Visitor(() => new Response('', { headers }))
  visitor.send(get())
  const { head } = await visitor.answer()
  expect(head.headerList().filter(([name]) => name === 'set-cookie')).toEqual([...headers])
})

test('HEAD, 204 and 304 have no body, whatever the handler gives', async () => {
  const visitor = new Visitor(request => {
    const status = Number(request.headers.get('x-status'))
    return new Response(status === 200 ? 'hello' : null, { status, headers: { 'x-a': 'b' } })
  })
  visitor.send(get('X-Status: 200\r\n', 'HEAD'))
  expect((await visitor.answer('HEAD')).head.status).toBe(200)
  expect(visitor.text).toBe('')
  for (const status of [204, 304]) {
    visitor.send(get(`X-Status: ${status}\r\n`))
    const { head } = await visitor.answer()
    expect([head.status, head.header('content-length'), head.header('transfer-encoding')]).toEqual([
      status,
      undefined,
      undefined,
    ])
  }
  expect(visitor.text).toBe('')
})

test('a handler cannot break the framing by headers', async () => {
  const visitor = new Visitor(
    () =>
      new Response('ok', {
        headers: { 'transfer-encoding': 'gzip', connection: 'x', 'keep-alive': '1', upgrade: 'x' },
      }),
  )
  visitor.send(get())
  expect((await visitor.answer()).head.headerList()).toEqual([['content-length', '2']])
})

test('requests in one piece are answered one after another, in order', async () => {
  const order: string[] = []
  const visitor = new Visitor(async request => {
    const text = await request.text()
    order.push(`begin ${text}`)
    await new Promise(resolve => setImmediate(resolve))
    order.push(`end ${text}`)
    return new Response(text)
  })
  const post = (body: string): string => get(`Content-Length: ${body.length}\r\n`, 'POST') + body
  const chunks = `${get('Transfer-Encoding: chunked\r\n', 'POST')}1\r\nb\r\n1\r\nB\r\n0\r\n\r\n`
  visitor.send(post('a') + chunks + post('c'))
  expect((await visitor.answers(3)).map(({ body }) => body)).toEqual(['a', 'bB', 'c'])
  expect(order).toEqual(['begin a', 'end a', 'begin bB', 'end bB', 'begin c', 'end c'])
  expect(visitor.end).toBe('open')
})

test('a request in single bytes is the same request', async () => {
  const visitor = new Visitor(async request => new Response(`${request.method} ${await request.text()}`))
  for (const byte of `${get('Transfer-Encoding: chunked\r\n', 'PUT')}5;x\r\nhello\r\n0\r\n\r\n`) {
    visitor.send(byte)
    await Promise.resolve()
  }
  expect((await visitor.answer()).body).toBe('PUT hello')
})

test('a visitor who half-closes still gets every answer', async () => {
  const visitor = new Visitor(() => new Response('ok'))
  visitor.send(get() + get())
  visitor.connection.ended()
  expect(await visitor.answers(2)).toHaveLength(2)
  await visitor.until(() => visitor.end === 'ended')
})

test('half a head or half a body ends without an answer', async () => {
  const visitor = new Visitor(() => new Response('ok'))
  visitor.send(`${get()}GET / HT`)
  visitor.connection.ended()
  await visitor.answer()
  await visitor.until(() => visitor.end === 'ended')
  expect(visitor.text).toBe('')

  const other = new Visitor(async request => new Response(await request.text()))
  other.send(`${get('Content-Length: 9\r\n', 'POST')}hello`)
  other.connection.ended()
  await other.until(() => other.end === 'cut')
  expect(other.text).toBe('')
})

test('the connection closes when the visitor asks for it', async () => {
  const visitor = new Visitor(() => new Response('ok'))
  visitor.send(get('Connection: close\r\n') + get())
  const { head } = await visitor.answer()
  expect(head.keepAlive).toBeFalse()
  await visitor.until(() => visitor.end === 'ended')
  expect(visitor.text).toBe('')
})

test('HTTP/1.0 gets no chunks', async () => {
  const old = 'GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n'
  const streaming = new Visitor(() => new Response(slowly('hello')))
  streaming.send(old)
  await streaming.until(() => streaming.end === 'ended')
  expect(streaming.text).toEndWith('connection: close\r\n\r\nhello')
  const known = new Visitor(() => new Response('hello'))
  known.send(old)
  await known.until(() => known.text.endsWith('hello'))
  expect(known.text).toContain('connection: keep-alive')
  expect(known.end).toBe('open')
})

test('a handler that throws cuts the stream without a byte, and its owner learns why', async () => {
  for (const handler of [
    () => Promise.reject(new Error('secret')),
    (): Response => {
      throw new Error('secret')
    },
    // What plain JavaScript may return.
    () => ({ body: 'no Response' }) as unknown as Response,
    () => Response.error(),
  ]) {
    const visitor = new Visitor(handler)
    visitor.send(get())
    await visitor.until(() => visitor.end !== 'open')
    expect([visitor.end, visitor.text]).toEqual(['cut', ''])
    expect(visitor.failures).toHaveLength(1)
  }
})

test('a body that fails on its way is cut, not ended', async () => {
  const body = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('hello'))
      },
      async pull(controller) {
        await new Promise(resolve => setImmediate(resolve))
        controller.error(new Error('disk on fire'))
      },
    })
  const visitor = new Visitor(() => new Response(body()))
  visitor.send(get())
  await visitor.until(() => visitor.end !== 'open')
  expect(visitor.end).toBe('cut')
  expect(visitor.text).not.toContain('0\r\n\r\n')
})

test('a body that fails while the visitor takes nothing is met behind what waits', async () => {
  let fail = (): void => {}
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(200_000))
      fail = () => controller.error(new Error('disk on fire'))
    },
  })
  const visitor = new Visitor(() => new Response(body))
  visitor.room = 1
  visitor.send(get())
  await visitor.until(() => visitor.room === 0)
  fail()
  // A rejection without a handler would end the process, and fails the test.
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
  expect(visitor.end).toBe('open')
  visitor.connection.drained()
  await visitor.until(() => visitor.end !== 'open')
  expect(visitor.end).toBe('cut')
  expect(visitor.failures).toEqual([new Error('disk on fire')])
})

test('a malformed request is refused with its code', async () => {
  const visitor = new Visitor(() => new Response('ok'))
  visitor.send('GET / HTTP/1.1\nHost: a\n\n')
  expect((await visitor.answer()).head.header('x-localtunnels-error')).toBe('BAD_REQUEST')
  expect(visitor.end).toBe('ended')
})

test('a method that no Request can have is refused, not turned into GET', async () => {
  for (const method of ['TRACE', 'get', 'NO-SUCH-METHOD-I-HOPE']) {
    let calls = 0
    const visitor = new Visitor(request => {
      calls++
      return new Response(request.method)
    })
    visitor.send(get('', method))
    const { head, body } = await visitor.answer()
    if (head.status === 200) expect(body).toBe(method)
    else expect([head.status, calls]).toEqual([405, 0])
  }
})

test('a broken request body fails the handler that reads it', async () => {
  const failed = Promise.withResolvers<unknown>()
  const visitor = new Visitor(async request => {
    await request.text().catch(failed.resolve)
    return new Response('ok')
  })
  visitor.send(`${get('Transfer-Encoding: chunked\r\n', 'POST')}zz\r\n`)
  expect(await failed.promise).toBeInstanceOf(Error)
  expect((await visitor.answer()).head.status).toBe(400)
})

test('a request body is read only as fast as the handler reads', async () => {
  const mayRead = Promise.withResolvers<void>()
  const visitor = new Visitor(async request => {
    await mayRead.promise
    let bytes = 0
    for await (const piece of request.body!) bytes += piece.length
    return new Response(String(bytes))
  })
  visitor.send(get('Content-Length: 300000\r\n', 'POST'))
  const piece = 'x'.repeat(100_000)
  visitor.send(piece)
  expect(visitor.isPaused).toBeTrue()
  mayRead.resolve()
  await visitor.until(() => !visitor.isPaused)
  visitor.send(piece)
  await visitor.until(() => !visitor.isPaused)
  visitor.send(piece)
  expect((await visitor.answer()).body).toBe('300000')
})

test('an answer is read only as fast as the visitor reads', async () => {
  let pulls = 0
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        pulls++
        await new Promise(resolve => setImmediate(resolve))
        controller.enqueue(new Uint8Array(65_536))
      },
    },
    { highWaterMark: 0 },
  )
  const visitor = new Visitor(() => new Response(body))
  visitor.room = 3
  visitor.send(get())
  await visitor.until(() => visitor.room === 0)
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
  expect(visitor.room).toBe(0)
  expect(pulls).toBeLessThanOrEqual(4)
  visitor.connection.drained()
  await visitor.until(() => visitor.room === -1)
  visitor.connection.aborted()
})

test('a visitor who leaves aborts the request and cancels the answer', async () => {
  const cancelled = Promise.withResolvers<void>()
  let signal: AbortSignal | undefined
  const body = new ReadableStream<Uint8Array>({
    pull: controller => controller.enqueue(new Uint8Array(65_536)),
    cancel: () => cancelled.resolve(),
  })
  const visitor = new Visitor(request => {
    signal = request.signal
    return new Response(body)
  })
  visitor.room = 1
  visitor.send(get())
  await visitor.until(() => visitor.room === 0)
  expect(signal?.aborted).toBeFalse()
  visitor.connection.aborted()
  expect(signal?.aborted).toBeTrue()
  await cancelled.promise
  expect(visitor.failures).toEqual([])
})

test('a visitor who leaves before the answer is there is not written to', async () => {
  const answer = Promise.withResolvers<Response>()
  const cancelled = Promise.withResolvers<void>()
  const visitor = new Visitor(() => answer.promise)
  visitor.send(get())
  visitor.connection.aborted()
  answer.resolve(new Response(new ReadableStream({ cancel: () => cancelled.resolve() })))
  await cancelled.promise
  expect(visitor.text).toBe('')
})

test('100 (Continue) is said when the handler reads, and only then', async () => {
  const reading = new Visitor(async request => new Response(await request.text()))
  reading.send(get('Content-Length: 5\r\nExpect: 100-continue\r\n', 'PUT'))
  await reading.until(() => reading.text.endsWith('HTTP/1.1 100 Continue\r\n\r\n'))
  reading.text = ''
  reading.send('hello')
  expect((await reading.answer()).body).toBe('hello')

  const refusing = new Visitor(() => new Response('no', { status: 403 }))
  refusing.send(get('Content-Length: 5\r\nExpect: 100-continue\r\n', 'PUT'))
  const { head } = await refusing.answer()
  expect([head.status, head.keepAlive]).toEqual([403, false])
})

test('a body that nobody read is dropped, up to a bound', async () => {
  const visitor = new Visitor(() => new Response('early'))
  visitor.send(`${get('Content-Length: 200000\r\n', 'POST')}x`)
  expect((await visitor.answer()).head.keepAlive).toBeTrue()
  visitor.send('x'.repeat(199_999) + get())
  expect((await visitor.answer()).body).toBe('early')

  const large = new Visitor(() => new Response('early'))
  large.send(get('Content-Length: 1000000000\r\n', 'POST'))
  expect((await large.answer()).head.keepAlive).toBeFalse()

  const endless = new Visitor(() => new Response('early'))
  endless.send(get('Transfer-Encoding: chunked\r\n', 'POST'))
  await endless.answer()
  for (let chunk = 0; endless.end === 'open' && chunk < 100; chunk++) {
    endless.send(`10000\r\n${'x'.repeat(0x10000)}\r\n`)
    await Promise.resolve()
  }
  expect(endless.end).toBe('cut')
})

test('pipelined bytes behind a slow answer stop the reading', async () => {
  const answer = Promise.withResolvers<Response>()
  let calls = 0
  const visitor = new Visitor(() => (calls++ === 0 ? answer.promise : new Response('next')), {
    maxPipelinedBytes: 100,
  })
  visitor.send(get() + get(`X: ${'y'.repeat(200)}\r\n`))
  expect(visitor.isPaused).toBeTrue()
  answer.resolve(new Response('first'))
  expect((await visitor.answers(2)).map(({ body }) => body)).toEqual(['first', 'next'])
  expect(visitor.isPaused).toBeFalse()
})
