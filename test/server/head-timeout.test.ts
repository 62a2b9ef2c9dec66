// A visitor whose request head never completes, and the one who comes next.

import { expect, test } from 'bun:test'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

test('a head that timed out leaves nothing to the next visitor', async () => {
  await using tunnel = await startTunnel(
    { fetch: request => Response.json([request.url, request.headers.get('x-secret')]) },
    { server: { limits: { headTimeoutMs: 1 } } },
  )
  const slow = await rawDial(tunnel.port)
  await slow.send(`GET /secret HTTP/1.1\r\nHost: ${tunnel.host}\r\nX-Secret: 1\r\nX-`)
  expect(await slow.end()).toStartWith('HTTP/1.1 408')
  slow.socket.end()
  await slow.closed()

  const next = await rawDial(tunnel.port)
  await next.send(`GET /next HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: close\r\n\r\n`)
  expect(await next.end()).toEndWith(`["http://${tunnel.host}/next",null]`)
  next.socket.end()
})
