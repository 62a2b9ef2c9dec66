// What throws inside the server behind a promise or a timer: an error event, the end of one connection, and no more.

import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import { Member } from '../../src/server/tunnels/member.ts'
import { ask } from '../support/ask.ts'
import { eventually, next } from '../support/events.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { control, SpeakingClient } from '../support/speaker.ts'
import { startServer } from '../support/tunnel.ts'

afterEach(() => mock.restore())

/** The next tunnel that is granted makes the server throw. */
function throwOnce(): void {
  spyOn(Member.prototype, 'attach').mockImplementationOnce(() => {
    throw new Error('thrown')
  })
}

test.each([
  ['behind the opening of a port', { kind: 'tcp' }],
  ['behind the wait of a token', { kind: 'http', name: 'app', token: 'good' }],
])('streams: %s', async (_where, wish) => {
  await using server = await startServer({
    tokens: ['good'],
    limits: { maxTokenGuesses: 1, tokenDelayMs: 50 },
  })
  const client = await SpeakingClient.connect(server.port, { authorization: 'Bearer good' })
  // From now on tokens of this address wait.
  await SpeakingClient.connect(server.port, { authorization: 'Bearer bad' }).catch(() => {})
  throwOnce()
  const told = next(server, 'error')
  client.say(control({ type: 'register', ref: 1, ...wish }))
  expect((await told).message).toBe('thrown')
  await client.closed
  await eventually(() => server.getStats().connections === 0, 'the connection to be forgotten')
  expect((await ask(server.port, 'localhost', { path: '/health' })).body).toBe('OK')
})

test('json: a registration', async () => {
  await using server = await startServer()
  using client = new NaiveJsonClient(server.port)
  throwOnce()
  const told = next(server, 'error')
  const registering = client.register('app').catch(() => {})
  expect((await told).message).toBe('thrown')
  await registering
  await eventually(() => server.getStats().connections === 0, 'the connection to be forgotten')
})
