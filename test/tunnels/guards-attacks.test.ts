// What hostile visitors send to get past a guard, as bytes: hosts, lines of the head, upgrades, requests behind others.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { guarding, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const basic = `Authorization: Basic ${Buffer.from('any:correct horse').toString('base64')}`
/** What the app got: its path, and what it could believe of the visitor. */
const seen: string[] = []
const note = ({ url: path, headers }: IncomingMessage) =>
  seen.push(
    `${path} user=${String(headers['x-localtunnels-user'])} ${String(headers.x_localtunnels_user ?? '')}`.trim(),
  )
const app = createServer((request, answer) => {
  note(request)
  answer.end('app')
})
app.on('upgrade', (request, socket) => {
  note(request)
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
})
let server: TunnelServer
let client: TunnelClient
/** An issuer of tokens. */
let issuer: Bun.Server<undefined>
let url = ''
let keys: CryptoKeyPair

beforeAll(async () => {
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const { port } = app.address() as AddressInfo
  keys = (await generateKeyPair('ES256', { extractable: true })) as CryptoKeyPair
  issuer = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async ({ url: asked }) =>
      asked.endsWith('/keys')
        ? Response.json({ keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'ES256' }] })
        : Response.json({ issuer: url, jwks_uri: `${url}/keys` }),
  })
  url = `http://127.0.0.1:${issuer.port}`
  server = await startServer({ guarding: guarding({ issuers: [{ issuer: url }] }) })
  client = new TunnelClient({ server: server.url })
  await client.http({ subdomain: 'shop', port, guard: { password: 'correct horse', open: ['/open/*'] } })
  await client.http({ subdomain: 'ci', port, guard: { jwt: { issuer: url, audience: 'ci' } } })
  await client.http({ subdomain: 'free', port })
})
afterAll(async () => {
  await client.disconnect()
  await server.stop()
  await issuer.stop(true)
  app.closeAllConnections()
  app.close()
})

/** The status line of the last answer of `answers`, and what the app saw. */
async function send(text: string, answers = 1) {
  seen.length = 0
  const visitor = await rawDial(server.port)
  await visitor.send(text.replaceAll('\n', '\r\n').replaceAll('<LF>', '\n'))
  let status = ''
  for (let left = answers; left > 0; left--) {
    await visitor.until('HTTP/1.1 ')
    status = (await visitor.until('\r\n')).slice(0, 3)
  }
  visitor.socket.terminate()
  return { status, seen: [...seen] }
}

test.each([
  ['a host in capitals, with a dot behind', 'GET /x HTTP/1.1\nHost: SHOP.LOCALHOST.\n\n', '401'],
  ['two hosts', 'GET /x HTTP/1.1\nHost: free.localhost\nHost: shop.localhost\n\n', '400'],
  ['a target of another host', 'GET http://shop.localhost/x HTTP/1.1\nHost: free.localhost\n\n', '400'],
  [
    'a target of a host without a guard',
    'GET http://free.localhost/x HTTP/1.1\nHost: shop.localhost\n\n',
    '400',
  ],
  ['a user in the host', 'GET /x HTTP/1.1\nHost: free.localhost@shop.localhost\n\n', '400'],
  ['a list of hosts', 'GET /x HTTP/1.1\nHost: free.localhost, shop.localhost\n\n', '400'],
  [
    'hosts that proxies name',
    'GET /x HTTP/1.1\nHost: shop.localhost\nX-Forwarded-Host: free.localhost\nForwarded: host=free.localhost\n\n',
    '401',
  ],
  ['HTTP/1.0', 'GET /x HTTP/1.0\nHost: shop.localhost\n\n', '401'],
  ['CONNECT', 'CONNECT shop.localhost:80 HTTP/1.1\nHost: shop.localhost\n\n', '405'],
  ['OPTIONS *', 'OPTIONS * HTTP/1.1\nHost: shop.localhost\n\n', '401'],
  [
    'a WebSocket',
    'GET /x HTTP/1.1\nHost: shop.localhost\nConnection: Upgrade\nUpgrade: websocket\nSec-Fetch-Mode: navigate\n\n',
    '401',
  ],
  [
    'two lengths',
    'POST /x HTTP/1.1\nHost: free.localhost\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\n\nGET /y HTTP/1.1\nHost: shop.localhost\n\n',
    '400',
  ],
  [
    'a cookie that is none',
    'GET /x HTTP/1.1\nHost: shop.localhost\nCookie: localtunnels-guard=e30.AAAA\n\n',
    '401',
  ],
  [
    'right credentials behind wrong ones',
    `GET /x HTTP/1.1\nHost: shop.localhost\nAuthorization: Basic eDp5\n${basic}\n\n`,
    '401',
  ],
  [
    'a blank in front of a colon',
    `GET /x HTTP/1.1\nHost: shop.localhost\n${basic}\nX-Localtunnels-User : root\n\n`,
    '400',
  ],
  [
    'a folded line',
    `GET /x HTTP/1.1\nHost: shop.localhost\n${basic}\nX-A: b\n X-Localtunnels-User: root\n\n`,
    '400',
  ],
  [
    'a line feed alone',
    `GET /x HTTP/1.1\nHost: shop.localhost\n${basic}\nX-A: b<LF>X-Localtunnels-User: root\n\n`,
    '400',
  ],
])('%s does not get in', async (_name, text, status) => {
  expect(await send(text)).toEqual({ status, seen: [] })
})

test('a request behind one for another host is judged by its own', async () => {
  const text = 'GET /1 HTTP/1.1\nHost: free.localhost\n\nGET /2 HTTP/1.1\nHost: shop.localhost\n\n'
  expect(await send(text, 2)).toEqual({ status: '401', seen: ['/1 user=undefined'] })
})

test('the name of the user is no visitor’s, in whatever spelling, also on an open path', async () => {
  const lines = 'X-Localtunnels-User: root\nx_localtunnels_user: root\nX-LOCALTUNNELS_USER: root\n'
  for (const [path, credentials] of [
    ['/x', `${basic}\n`],
    ['/open/x', ''],
  ])
    expect(await send(`GET ${path} HTTP/1.1\nHost: shop.localhost\n${credentials}${lines}\n`)).toEqual({
      status: '200',
      seen: [`${path} user=undefined`],
    })
})

test('bytes behind an open WebSocket are that of the WebSocket, and no request', async () => {
  const text =
    'GET /open/ws HTTP/1.1\nHost: shop.localhost\nConnection: Upgrade\nUpgrade: websocket\n\nGET /x HTTP/1.1\nHost: shop.localhost\n\n'
  expect(await send(text)).toEqual({ status: '101', seen: ['/open/ws user=undefined'] })
})

test('a WebSocket that a token of an issuer let in ends with the token', async () => {
  // Clocks may differ by 30 seconds: two are left.
  const token = await new SignJWT({
    iss: url,
    aud: 'ci',
    sub: 'job',
    exp: Math.floor(Date.now() / 1_000) - 28,
  })
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .sign(keys.privateKey)
  seen.length = 0
  const visitor = await rawDial(server.port)
  await visitor.send(
    `GET /live HTTP/1.1\r\nHost: ci.localhost\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  )
  await visitor.until('HTTP/1.1 101')
  expect(seen).toEqual(['/live user=job'])
  await within(
    visitor.when(() => visitor.isClosed, 'the end of the token'),
    'the end of the token',
  )
  const late = await send(`GET / HTTP/1.1\nHost: ci.localhost\nAuthorization: Bearer ${token}\n\n`)
  expect(late).toEqual({ status: '401', seen: [] })
})
