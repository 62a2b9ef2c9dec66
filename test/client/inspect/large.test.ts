// A body of any length while it is inspected: counted to the byte, kept up to the bound, passed on whole.
// LT_LARGE_MB=1024 makes it a gigabyte each way.

import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { InspectorApi } from '../../support/inspector.ts'
import { RawOrigin, rawDial } from '../../support/raw.ts'
import { startTunnel } from '../../support/tunnel.ts'

const MEGABYTES = Number(process.env.LT_LARGE_MB ?? 32)
const TOTAL = MEGABYTES * 1_048_576
const MAX_BODY = 65_536
const MEMORY = 1_048_576
/** What both ends of a tunnel, the app and the visitor may add to this process, whatever the length. */
const GROWTH = 200_000_000

/** Differs in every megabyte, so that a shifted or repeated piece shows in the hash. */
const piece = new Uint8Array(1_048_579).map((_, index) => index * 31 + (index >> 8))

test.each([
  ['of a known length', false],
  ['in chunks', true],
] as const)(
  `${MEGABYTES} MB up and down, %s`,
  async (_, isChunked) => {
    using app = new RawOrigin()
    await using tunnel = await startTunnel({
      port: app.port,
      inspect: { memory: MEMORY, maxBody: MAX_BODY, rate: 0 },
    })
    const api = new InspectorApi(tunnel.client)
    const visitor = await rawDial(tunnel.port)
    const before = process.memoryUsage.rss()
    const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${TOTAL}`
    await visitor.send(`POST /large HTTP/1.1\r\nHost: ${tunnel.host}\r\n${framing}\r\n\r\n`)
    const seen = await app.accept()
    await seen.until('\r\n\r\n')
    await moved(visitor, seen, isChunked)
    await seen.send(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`)
    await visitor.until('\r\n\r\n')
    await moved(seen, visitor, isChunked)
    const { json } = await api.ask('session')
    expect(json.used.memoryBytes).toBeLessThanOrEqual(MEMORY)
    expect(json.dropped.bytes).toBe(0)
    expect(process.memoryUsage.rss() - before).toBeLessThan(GROWTH)
    const row = await api.ended('/large')
    const kept = { totalBytes: TOTAL, keptBytes: MAX_BODY }
    expect([row.requestBody, row.responseBody, row.state, row.isIncomplete]).toEqual([
      kept,
      kept,
      'done',
      false,
    ])
    const wanted = Buffer.from(piece.subarray(0, MAX_BODY))
    for (const side of ['request', 'response'])
      expect(wanted.equals(await api.bytes(`exchanges/${row.id}/${side}.body`))).toBe(true)
    expect((await api.detail(row.id)).replayable).toBe('BODY_TRUNCATED')
    visitor.socket.terminate()
  },
  20_000 + MEGABYTES * 200,
)

type End = Awaited<ReturnType<typeof rawDial>>

/** A body from one end to the other, compared by its hash. */
async function moved(from: End, to: End, isChunked: boolean): Promise<void> {
  const [sent, got] = [createHash('sha256'), createHash('sha256')]
  const sending = (async () => {
    for (let left = TOTAL; left > 0; ) {
      const now = piece.subarray(0, Math.min(left, piece.length))
      left -= now.length
      sent.update(now)
      if (isChunked) await from.send(`${now.length.toString(16)}\r\n`)
      await from.send(now)
      if (isChunked) await from.send('\r\n')
    }
    if (isChunked) await from.send('0\r\n\r\n')
  })()
  if (isChunked) {
    for (;;) {
      const size = Number.parseInt(await to.until('\r\n'), 16)
      if (size > 0) got.update(await to.exactly(size), 'latin1')
      await to.exactly(2)
      if (size === 0) break
    }
  } else
    for (let left = TOTAL; left > 0; ) {
      await to.when(() => to.bytes.length > 0, 'more of the body')
      const now = to.take(Math.min(left, to.bytes.length))
      left -= now.length
      got.update(now, 'latin1')
    }
  await sending
  expect(got.digest('hex')).toBe(sent.digest('hex'))
}
