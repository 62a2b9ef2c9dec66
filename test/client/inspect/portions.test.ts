// What the capture reads at a time: a flood of tiny frames must not hold up what else the client does.

import { expect, test } from 'bun:test'
import { Capture } from '../../../src/parts/inspect/capture.ts'
import type { Entry } from '../../../src/parts/inspect/entry.ts'
import { FROM_APP } from '../../../src/parts/inspect/flow.ts'
import { HttpFlow } from '../../../src/parts/inspect/http-flow.ts'
import { inspectSettings } from '../../../src/parts/inspect/settings.ts'
import { ExchangeStore } from '../../../src/parts/inspect/store.ts'

const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

test('of a read full of empty frames few are read between two looks at the clock, and all in the end', () => {
  const began: Entry[] = []
  const store = new ExchangeStore(inspectSettings(true)!)
  const capture = new Capture(store, { began: entry => void began.push(entry), requestEnded() {} })
  const flow = new HttpFlow(capture, { tunnel: 'app', service: 'app' })
  const request = Buffer.from(`GET / HTTP/1.1\r\nHost: app\r\n${UPGRADE}`)
  expect(flow.wants(request, 0, request.length)).toBe(true)
  flow.sent(flow.reserve(), request, 0, request.length)
  flow.received(Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}`))
  expect(flow.read(Number.POSITIVE_INFINITY)).toBe(true)
  const pings = 262_144
  flow.received(Buffer.alloc(pings * 2, Uint8Array.of(0x89, 0)))
  expect(flow.read(0)).toBe(false)
  expect(began[0]?.totalFrames).toBe(4_096)
  expect(flow.read(Number.POSITIVE_INFINITY)).toBe(true)
  expect(began[0]?.totalFrames).toBe(pings)
  expect(flow.unseenBytes(FROM_APP)).toBe(0)
})
