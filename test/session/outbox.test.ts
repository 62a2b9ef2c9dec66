// The batch of a session: small while little is said, and still one write per turn of the event loop.

import { expect, test } from 'bun:test'
import { Outbox } from '../../src/session/outbox.ts'
import { FRAME_HEADER_BYTES, GOAWAY } from '../../src/wire/frame.ts'

const HEADROOM = 10

function outbox() {
  const sent: Uint8Array[] = []
  let flush = () => {}
  const carrier = {
    headroom: HEADROOM,
    send(batch: Uint8Array, start: number, end: number) {
      sent.push(batch.slice(start, end))
      return true
    },
    close() {},
    terminate() {},
  }
  const scheduler = {
    soon: (run: () => void) => {
      flush = run
    },
    after: () => () => {},
    now: () => 0,
  }
  const box = new Outbox(
    carrier,
    scheduler,
    () => {},
    () => {},
    4_194_304,
  )
  return { box, sent, flush: () => flush() }
}

test('an idle session keeps a few KiB, not a full batch', () => {
  const { box } = outbox()
  expect(box.batch.length).toBeLessThan(10_000)
})

test('what is said in one turn leaves in one write, up to a full batch', () => {
  const { box, sent, flush } = outbox()
  const length = 1_000
  for (let frame = 0; frame < 200; frame++) {
    const at = box.frame(GOAWAY, frame, length)
    box.batch.fill(frame, at, at + length)
  }
  flush()
  expect(sent.length).toBe(1)
  const [all = new Uint8Array()] = sent
  expect(all.length).toBe(200 * (FRAME_HEADER_BYTES + length))
  for (let frame = 0; frame < 200; frame++) {
    const at = frame * (FRAME_HEADER_BYTES + length) + FRAME_HEADER_BYTES
    expect([all[at], all[at + length - 1]]).toEqual([frame, frame])
  }
})
