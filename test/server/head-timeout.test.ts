// A visitor whose request head never completes, and the one who comes next.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect as http2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { startApp, startHttp2Site } from '../support/http2-site.ts'
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

test('a visitor that says nothing yet has the time of an idle connection: before and behind its handshake, HTTP/1.1 and HTTP/2', async () => {
  using app = startApp()
  for (const readsHellos of [false, true]) {
    await using site = await startHttp2Site(app.port, {
      readsHellos,
      server: { limits: { headTimeoutMs: 250, idleTimeoutMs: 60_000 } },
    })
    const dial = async () => {
      const socket = connect(site.port, '127.0.0.1')
      await once(socket, 'connect')
      return socket
    }
    const secured = async (socket: Socket, protocol: string) => {
      const secure = connectTls({
        socket,
        ALPNProtocols: [protocol],
        servername: 'app.localhost',
        rejectUnauthorized: false,
      })
      await once(secure, 'secureConnect')
      return secure
    }
    const silent = await dial()
    const [first, second] = [await secured(await dial(), 'http/1.1'), await secured(await dial(), 'h2')]
    // Another one began, and its time is over.
    const slow = await secured(await dial(), 'http/1.1')
    slow.write('GET / HTTP/1.1\r\n')
    expect(String((await once(slow, 'data'))[0])).toStartWith('HTTP/1.1 408')
    slow.destroy()
    for (const socket of [first, await secured(silent, 'http/1.1')]) {
      socket.write(`GET / HTTP/1.1\r\nHost: ${site.host}\r\nConnection: close\r\n\r\n`)
      expect(String((await once(socket, 'data'))[0])).toStartWith('HTTP/1.1 200')
      socket.destroy()
    }
    const session = http2(`https://${site.host}`, { createConnection: () => second })
    const stream = session.request({ ':path': '/' })
    const [head] = await once(stream, 'response')
    expect(head[':status']).toBe(200)
    session.destroy()
  }
}, 60_000)
