// Bodies of every size, both ways at once, byte for byte.

import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Random } from '../support/random.ts'
import { type LiveTunnel, startTunnel } from '../support/tunnel.ts'

const SIZES = [0, 1, 2, 1_023, 65_535, 65_536, 65_537, 262_144, 262_145, 1_000_000, 8_388_609]
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

function bytesOf(size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  for (let at = 0; at < size; at += 65_536)
    crypto.getRandomValues(bytes.subarray(at, Math.min(size, at + 65_536)))
  return bytes
}

/** Sends back what it gets, in pieces, and says what it got; `/length` with a length, anything else in chunks. */
async function echo(): Promise<{ port: number } & Disposable> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const body = Buffer.concat(pieces)
      response.setHeader('X-Sha', sha256(body))
      response.setHeader(
        'X-Framing',
        request.headers['transfer-encoding'] ?? `${request.headers['content-length']}`,
      )
      if (request.url === '/length') response.setHeader('Content-Length', body.length)
      for (let at = 0; at < body.length; at += 50_000) response.write(body.subarray(at, at + 50_000))
      response.end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port, // it listens on a port
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function roundTrip(tunnel: LiveTunnel, size: number, path: string, isStreamed: boolean): Promise<void> {
  const bytes = bytesOf(size)
  const body = isStreamed ? new Blob([bytes as never]).stream() : bytes // a plain buffer backs it
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}${path}`, {
    method: 'POST',
    headers: { host: tunnel.host },
    body: body as never, // both are bodies
  })
  expect(answer.headers.get('x-sha')).toBe(sha256(bytes))
  if (path === '/length') expect(answer.headers.get('content-length')).toBe(`${size}`)
  expect(sha256(await answer.bytes())).toBe(sha256(bytes))
}

test('a body with its length goes there and back', async () => {
  using app = await echo()
  await using tunnel = await startTunnel({ port: app.port })
  for (const size of SIZES) await roundTrip(tunnel, size, '/length', false)
})

test('a body in chunks goes there and back', async () => {
  using app = await echo()
  await using tunnel = await startTunnel({ port: app.port })
  for (const size of SIZES) await roundTrip(tunnel, size, '/chunks', true)
})

test('many bodies at once keep to themselves', async () => {
  using app = await echo()
  await using tunnel = await startTunnel({ port: app.port })
  const random = new Random(7)
  await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      roundTrip(tunnel, random.below(700_000), n % 2 ? '/length' : '/x', n % 3 === 0),
    ),
  )
})
