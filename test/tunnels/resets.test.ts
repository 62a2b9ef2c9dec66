// Resets at random moments cross a tunnel as resets, of raw connections and of answers without a length, with the client
// on Bun and on Node. LT_FUZZ=10 makes 8,000 of them.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type PeerServer, peerClient, peerServer, reset } from '../support/peer.ts'
import { ClientProcess } from '../support/processes.ts'
import { FUZZ, Random } from '../support/random.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const COUNT = 200 * FUZZ
const AT_ONCE = 10
const TIMEOUT_MS = 30_000 * FUZZ
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-'))
const script = join(folder, 'client.mjs')

beforeAll(async () => {
  const entrypoints = [join(import.meta.dir, '../support/client-process.ts')]
  const built = await Bun.build({ entrypoints, target: 'node' })
  await Bun.write(script, built.outputs[0]!)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A port for visitors, and the origin that they reach through the client. */
interface Way extends AsyncDisposable {
  readonly port: number
  readonly origin: PeerServer
}

async function way(kind: 'http' | 'tcp', runtime: 'Bun' | 'Node'): Promise<Way> {
  const origin = await peerServer({})
  const server = await startServer()
  const client = new ClientProcess(
    `127.0.0.1:${server.port}`,
    kind === 'tcp' ? 'tcp' : 'app',
    origin.port,
    runtime === 'Node' ? { program: ['node', script] } : {},
  )
  const name = await client.event('connected')
  return {
    origin,
    port: kind === 'tcp' ? Number(name.split('-')[1]) : server.port,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]()
      await server.stop()
      origin.close()
    },
  }
}

/** How the connection ended: `end`, or the code of an error. */
function outcome(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  socket.on('end', () => resolve('end'))
  socket.on('error', error => resolve('code' in error ? String(error.code) : error.message))
  socket.on('close', () => resolve('closed'))
  return promise
}

function act(one: Socket, other: Socket, random: Random): void {
  for (const socket of [one, other]) {
    if (socket.destroyed || !random.chance(0.5)) continue
    socket.write(Buffer.alloc(1 + random.below(random.chance(0.2) ? 200_000 : 2_000)))
  }
}

/** Runs `one` for each seed, some at a time, and returns what went wrong. */
async function mistakes(one: (random: Random) => Promise<string | undefined>): Promise<string[]> {
  const found: string[] = []
  for (let first = 1; first <= COUNT; first += AT_ONCE) {
    const seeds = Array.from({ length: AT_ONCE }, (_, index) => first + index)
    const outcomes = await Promise.all(seeds.map(seed => one(new Random(seed))))
    for (const [index, mistake] of outcomes.entries())
      if (mistake !== undefined) found.push(`seed ${seeds[index]}: ${mistake}`)
  }
  return found
}

describe.each(['Bun', 'Node'] as const)('with the client on %s', runtime => {
  test(
    'a raw connection that one side resets is reset on the other',
    async () => {
      await using through = await way('tcp', runtime)
      // One at a time connects: the connection at the origin is this visitor's.
      let last: Promise<unknown> = Promise.resolve()
      const open = async () => {
        const visitor = await peerClient(through.port, false)
        return { visitor, atOrigin: await through.origin.accepted() }
      }
      const found = await mistakes(async random => {
        const opening = last.then(open)
        last = opening
        const { visitor, atOrigin } = await opening
        const [breaker, other] = random.chance(0.5) ? [visitor, atOrigin] : [atOrigin, visitor]
        const told = outcome(other)
        other.resume()
        if (random.chance(0.7)) breaker.resume()
        for (let turns = random.below(20); turns > 0; turns--) {
          act(visitor, atOrigin, random)
          await turn()
        }
        reset(breaker)
        for (let turns = random.below(5); turns > 0; turns--) {
          act(visitor, atOrigin, random)
          await turn()
        }
        const end = await within(told, 'the end of the other side')
        other.destroy()
        return end === 'end' ? `${breaker === visitor ? 'visitor' : 'origin'} saw an end` : undefined
      })
      expect(found).toEqual([])
    },
    TIMEOUT_MS,
  )

  test(
    'an answer without a length that the origin resets never looks complete',
    async () => {
      await using through = await way('http', runtime)
      let last: Promise<unknown> = Promise.resolve()
      const open = async () => {
        const visitor = await peerClient(through.port, false)
        visitor.write('POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 100000000\r\n\r\n')
        const atOrigin = await through.origin.accepted()
        await within(once(atOrigin, 'data'), 'the request')
        return { visitor, atOrigin }
      }
      const found = await mistakes(async random => {
        const opening = last.then(open)
        last = opening
        const { visitor, atOrigin } = await opening
        const told = outcome(visitor)
        let status = ''
        visitor.on('data', (bytes: Buffer) => {
          if (status.length < 12) status += bytes.toString('latin1', 0, 12)
        })
        if (random.chance(0.5)) atOrigin.pause()
        atOrigin.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n')
        for (let turns = random.below(20); turns > 0; turns--) {
          act(visitor, atOrigin, random)
          await turn()
        }
        reset(atOrigin)
        for (let turns = random.below(5); turns > 0; turns--) {
          act(visitor, atOrigin, random)
          await turn()
        }
        const end = await within(told, 'the end of the answer')
        visitor.destroy()
        // A reset before the head of the answer is a 502, and that is whole.
        if (status.startsWith('HTTP/1.1 502')) return undefined
        return end === 'end' ? `the visitor saw an end after ${status}` : undefined
      })
      expect(found).toEqual([])
    },
    TIMEOUT_MS,
  )
})
