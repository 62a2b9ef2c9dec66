// What a `fetch` handler throws: an `error` event with the cause, the code in the reports of both ends, a page for the visitor.

import { expect, test } from 'bun:test'
import { TunnelError } from '../../src/errors.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { startTunnel } from '../support/tunnel.ts'

for (const wire of ['streams', 'json'] as const) {
  test(`${wire}: what a fetch handler throws is an error event and the code of both reports`, async () => {
    const thrown = new Error('disk on fire')
    await using tunnel = await startTunnel({ fetch: () => Promise.reject(thrown) }, { wire })
    const errors = next(tunnel.client, 'error')
    const response = next(tunnel.client, 'response')
    const request = next(tunnel.server, 'request')
    const answer = await ask(tunnel.port, tunnel.host, { path: '/pay?secret=1' })
    expect(answer).toMatchObject({ status: 500, code: 'HANDLER_FAILED' })
    expect(answer.body).not.toContain('disk on fire')
    const error = await errors
    expect(error).toBeInstanceOf(TunnelError)
    expect(error).toMatchObject({ code: 'HANDLER_FAILED', cause: thrown })
    expect(error.message).toStartWith('GET /pay: the fetch handler threw: disk on fire.')
    expect(await response).toMatchObject({ status: 500, error: 'HANDLER_FAILED' })
    expect(await request).toMatchObject({ status: 500, error: 'HANDLER_FAILED' })
  })
}

test('a handler that fails is asked once: its GET is not tried again on another stream', async () => {
  let calls = 0
  await using tunnel = await startTunnel({
    fetch: () => {
      if (++calls === 2) throw new Error('second')
      return new Response('ok')
    },
  })
  const errors = next(tunnel.client, 'error')
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
  // On the stream of the first one.
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(500)
  await errors
  expect(calls).toBe(2)
})

test('an answer whose body fails is cut, and the error names its cause', async () => {
  const body = new ReadableStream({
    start: controller => controller.enqueue(Buffer.from('hello')),
    async pull(controller) {
      await new Promise(resolve => setImmediate(resolve))
      controller.error(new Error('half way'))
    },
  })
  await using tunnel = await startTunnel({ fetch: () => new Response(body) })
  const errors = next(tunnel.client, 'error')
  const response = next(tunnel.client, 'response')
  expect(ask(tunnel.port, tunnel.host)).rejects.toThrow()
  expect(await errors).toMatchObject({ code: 'HANDLER_FAILED', cause: new Error('half way') })
  expect(await response).toMatchObject({ status: 200, error: 'HANDLER_FAILED' })
})
