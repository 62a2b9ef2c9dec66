// The WebSocket parser against the one of the `ws` package: random conversations, many of them broken.

import { expect, test } from 'bun:test'
import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import { BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, WebSocketParser } from '../../src/wire/websocket.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'
import { joined, ParserLog, type PlainFrame, plainFrame } from '../support/websocket.ts'

// By path, since Bun puts a class of its own in the place of the package. It has no types for its parts.
const require = createRequire(import.meta.url)
const Receiver = require('../../node_modules/ws/lib/receiver.js') as new (options: object) => Writable

/** What `ws` says about the same bytes. */
async function reference(isServer: boolean, pieces: readonly Uint8Array[]): Promise<ParserLog> {
  const log = new ParserLog()
  const receiver = new Receiver({ isServer, maxPayload: 0, binaryType: 'nodebuffer' })
  let isOver = false
  receiver
    .on('message', (data: Buffer, isBinary: boolean) =>
      isBinary ? log.binary(data) : log.text(String(data)),
    )
    .on('ping', (data: Buffer) => log.ping(data))
    .on('pong', (data: Buffer) => log.pong(data))
    .on('conclude', (code: number, reason: Buffer) => {
      isOver = true
      log.closed(code, String(reason))
    })
    .on('error', (error: Error) => {
      isOver = true
      // ws keeps the close code under a symbol.
      const code = Object.getOwnPropertySymbols(error).map(key => Reflect.get(error, key) as number)[0]
      log.failed(code ?? 0, error.message)
    })
  for (const piece of pieces) {
    if (isOver) break
    await new Promise<void>(resolve => receiver.write(Buffer.from(piece), () => resolve()))
  }
  return log
}

function randomFrames(rng: Random, isServer: boolean): Uint8Array {
  const frames: Uint8Array[] = []
  let inMessage = false
  for (let n = 1 + rng.below(6); n > 0; n--) {
    const isControl = rng.below(4) === 0
    const opcode = isControl
      ? rng.pick([PING, PONG, CLOSE])
      : inMessage
        ? CONTINUATION
        : rng.pick([TEXT, BINARY])
    const fin = isControl || rng.below(2) === 0
    if (!isControl) inMessage = !fin
    const text = 'grüße 世界 '.repeat(rng.below(20))
    const closing = Uint8Array.of(rng.pick([3, 3, 11, 15, 0]), rng.below(256), 0x61)
    const payload =
      opcode === CLOSE
        ? closing.subarray(0, rng.pick([0, 2, 3, 3]))
        : isControl
          ? rng.bytes(rng.below(126))
          : text
    const mask = rng.bytes(4)
    let frame: PlainFrame = { opcode, fin, payload }
    if (isServer) frame = { ...frame, mask: [mask[0]!, mask[1]!, mask[2]!, mask[3]!] }
    frames.push(plainFrame(frame))
  }
  const whole = joined(frames)
  for (let n = rng.pick([0, 0, 1, 2]); n > 0; n--)
    whole[rng.below(Math.min(whole.length, 300))]! ^= 1 << rng.below(8)
  return whole
}

test('ws and we agree on every conversation, whole or broken', async () => {
  const outcomes = new Map<string, number>()
  countInputs('WebSocket conversations', 1500 * FUZZ)
  for (let seed = 1; seed <= 1500 * FUZZ; seed++) {
    const rng = new Random(seed)
    const isServer = rng.below(2) === 0
    const pieces = rng.slices(randomFrames(rng, isServer), rng.pick([3, 50, 2000]))
    const theirs = await reference(isServer, pieces)
    const ours = new ParserLog()
    const parser = new WebSocketParser({ role: isServer ? 'server' : 'client', maxTextBytes: 2 ** 40 }, ours)
    for (const piece of pieces) parser.receive(piece.slice())

    // Two differences are wanted: the RFC forbids longer lengths than needed and negative ones, ws lets both be.
    if (ours.failure === 'a length in more bytes than needed' || ours.failure === 'a negative length')
      continue
    if (Bun.deepEquals(ours.entries, theirs.entries) && startsWith(ours.bytes, theirs.bytes)) {
      const outcome = ours.entries.at(-1)?.split(' ').slice(0, 2).join(' ') ?? 'nothing'
      const kind = outcome.startsWith('failed') ? outcome : outcome.split(' ')[0]!
      outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
      continue
    }
    throw new Error(
      `seed ${seed}: ours ${ours.entries.join(', ')} (${ours.failure}), ws ${theirs.entries.join(', ')} (${theirs.failure})`,
    )
  }
  // The cases reached what they are for.
  for (const kind of ['text', 'closed', 'failed 1002', 'failed 1007'])
    expect(outcomes.get(kind)).toBeGreaterThan(20)
})

/** ws only gives whole messages, we give every piece. */
function startsWith(ours: Uint8Array, theirs: Uint8Array): boolean {
  return Buffer.compare(ours.subarray(0, theirs.length), theirs) === 0
}
