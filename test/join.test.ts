// A stream joined to a socket in whichever order the two come.

import { expect, test } from 'bun:test'
import { Join } from '../src/join.ts'
import { Pair } from './support/sessions.ts'

test('a socket that ended before there was a stream ends the stream, behind what was said first', () => {
  const pair = new Pair()
  const join = new Join('CANCELLED', true)
  join.socketHandler.ended()
  const stream = pair.server.open(7, join)
  stream?.write(Buffer.from('read ahead'))
  if (stream !== undefined) join.useStream(stream)
  pair.settle()
  const [far] = pair.clientLog.streams
  expect(Buffer.from(far?.bytes ?? []).toString()).toBe('read ahead')
  expect(far?.deliveredAtEnd).toBe(0)
})
