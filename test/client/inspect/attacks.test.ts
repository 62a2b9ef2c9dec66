// What other pages in the user's browser, other users' programs and visitors try on the inspector, and do not get.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { InspectorApi } from '../../support/inspector.ts'
import { rawDial } from '../../support/raw.ts'
import { type LiveTunnel, startTunnel } from '../../support/tunnel.ts'

let tunnel: LiveTunnel
let api: InspectorApi
let port = 0

beforeAll(async () => {
  tunnel = await startTunnel({ fetch: () => new Response('app'), inspect: true })
  api = new InspectorApi(tunnel.client)
  port = Number(new URL(api.base).port)
  await (
    await fetch(`http://127.0.0.1:${tunnel.port}/secret-path`, { headers: { host: tunnel.host } })
  ).text()
  await api.ended('/secret-path')
})
afterAll(() => tunnel[Symbol.asyncDispose]())

/** The status and the text of an answer to exactly this. */
async function raw(lines: readonly string[], body = ''): Promise<string> {
  const visitor = await rawDial(port)
  await visitor.send(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`)
  const answer = await visitor.end()
  visitor.socket.terminate()
  return answer
}

const good = () => [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${api.token}`]
const list = 'GET /api/v1/exchanges HTTP/1.1'

describe('the inspector refuses', () => {
  test('nothing of its own user, by any of its three names', async () => {
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])
      expect(await raw([list, `Host: ${host}`, `Authorization: Bearer ${api.token}`])).toContain(
        '/secret-path',
      )
    expect(
      await raw([list, ...good(), `Origin: http://127.0.0.1:${port}`, 'Sec-Fetch-Site: same-origin']),
    ).toContain('/secret-path')
  })

  const refused: [what: string, lines: () => string[], code: string][] = [
    ['a request without the token', () => [list, `Host: 127.0.0.1:${port}`], 'INSPECT_TOKEN_REFUSED'],
    [
      'a wrong token',
      () => [list, `Host: 127.0.0.1:${port}`, `Authorization: Bearer ${'x'.repeat(43)}`],
      'INSPECT_TOKEN_REFUSED',
    ],
    [
      'the token in a cookie',
      () => [list, `Host: 127.0.0.1:${port}`, `Cookie: token=${api.token}`],
      'INSPECT_TOKEN_REFUSED',
    ],
    [
      'the token in the query',
      () => [list.replace(' HTTP', `?token=${api.token} HTTP`), `Host: 127.0.0.1:${port}`],
      'INSPECT_TOKEN_REFUSED',
    ],
    [
      'a name that was made to resolve to this machine',
      () => [list, `Host: evil.example:${port}`, ...good().slice(1)],
      'INSPECT_REFUSED',
    ],
    [
      'a host that begins as its own does',
      () => [list, `Host: 127.0.0.1.evil.example:${port}`, ...good().slice(1)],
      'INSPECT_REFUSED',
    ],
    ['its name without the port', () => [list, 'Host: 127.0.0.1', ...good().slice(1)], 'INSPECT_REFUSED'],
    ["the tunnel's own host", () => [list, `Host: ${tunnel.host}`, ...good().slice(1)], 'INSPECT_REFUSED'],
    ['another origin', () => [list, ...good(), 'Origin: https://evil.example'], 'INSPECT_REFUSED'],
    [
      'another port of this machine',
      () => [list, ...good(), 'Origin: http://127.0.0.1:3000'],
      'INSPECT_REFUSED',
    ],
    [
      'localhost as the origin of 127.0.0.1',
      () => [list, ...good(), `Origin: http://localhost:${port}`],
      'INSPECT_REFUSED',
    ],
    ['an opaque origin, as of a sandboxed frame', () => [list, ...good(), 'Origin: null'], 'INSPECT_REFUSED'],
    ['a cross-site fetch', () => [list, ...good(), 'Sec-Fetch-Site: cross-site'], 'INSPECT_REFUSED'],
    ['a page of another port', () => [list, ...good(), 'Sec-Fetch-Site: same-site'], 'INSPECT_REFUSED'],
    [
      'a frame of the page in another site',
      () => ['GET / HTTP/1.1', ...good(), 'Sec-Fetch-Site: cross-site'],
      'INSPECT_REFUSED',
    ],
    [
      'a form',
      () => [
        'POST /api/v1/exchanges/1/replay HTTP/1.1',
        ...good(),
        'Content-Type: text/plain',
        'Content-Length: 0',
      ],
      'INSPECT_REFUSED',
    ],
    [
      'a form of the usual type',
      () => [
        'POST /api/v1/exchanges/1/replay HTTP/1.1',
        ...good(),
        'Content-Type: application/x-www-form-urlencoded',
        'Content-Length: 0',
      ],
      'INSPECT_REFUSED',
    ],
    [
      'a write without a type',
      () => ['PUT /api/v1/exchanges/1/pin HTTP/1.1', ...good(), 'Content-Length: 0'],
      'INSPECT_REFUSED',
    ],
  ]
  for (const [what, lines, code] of refused)
    test(what, async () => {
      const answer = await raw(lines())
      expect(answer).toContain(code)
      expect(answer).not.toContain('secret-path')
      expect(answer).not.toMatch(/access-control-allow/i)
    })

  test('what a browser asks before it sends something to another origin', async () => {
    const answer = await raw([
      'OPTIONS /api/v1/exchanges HTTP/1.1',
      `Host: 127.0.0.1:${port}`,
      'Origin: https://evil.example',
      'Access-Control-Request-Method: DELETE',
    ])
    expect(answer).toStartWith('HTTP/1.1 403')
    expect(answer).not.toMatch(/access-control-allow/i)
  })

  test('a request that could be read in two ways', async () => {
    const answer = await raw(
      ['POST /api/v1/wait HTTP/1.1', ...good(), 'Content-Length: 5', 'Transfer-Encoding: chunked'],
      '0\r\n\r\n',
    )
    expect(answer).toStartWith('HTTP/1.1 400')
  })
})

test('a Host that is none is refused like a foreign one, and the inspector goes on', async () => {
  const hosts = ['a b', '[::1', '[', `127.0.0.1:99999`, '%zz', '//', `127.0.0.1:${port}/@evil`, '\u0001']
  for (const host of hosts)
    for (const target of ['/', '/api/v1/exchanges', 'http://[/', '*']) {
      const answer = await raw([
        `GET ${target} HTTP/1.1`,
        `Host: ${host}`,
        `Authorization: Bearer ${api.token}`,
      ])
      expect(answer).toStartWith('HTTP/1.1 4')
      expect(answer).not.toContain('/secret-path')
    }
  expect(await raw([list, ...good()])).toContain('/secret-path')
})

test('it listens on the loopback addresses only', async () => {
  const others = Object.values(networkInterfaces())
    .flat()
    .filter(one => one !== undefined && !one.internal && one.family === 'IPv4')
  for (const one of others) {
    const socket = connect({ host: one!.address, port })
    const outcome = await new Promise(resolve =>
      socket.once('connect', () => resolve('connected')).once('error', () => resolve('refused')),
    )
    socket.destroy()
    expect(outcome).toBe('refused')
  }
  const six = connect({ host: '::1', port })
  await new Promise((resolve, reject) => six.once('connect', resolve).once('error', reject))
  six.destroy()
})

test('no path of a tunnel host leads to it', async () => {
  for (const path of ['/api/v1/exchanges', '/', '/api/v1/session']) {
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}${path}`, {
      headers: { host: tunnel.host, authorization: `Bearer ${api.token}` },
    })
    expect(await answer.text()).toBe('app')
  }
})

test('a captured page is bytes, and no page', async () => {
  await using page = await startTunnel({
    fetch: () => new Response('<script>alert(1)</script>', { headers: { 'content-type': 'text/html' } }),
    inspect: true,
  })
  const own = new InspectorApi(page.client)
  await (await fetch(`http://127.0.0.1:${page.port}/`, { headers: { host: page.host } })).text()
  const { id } = await own.ended()
  for (const path of [`exchanges/${id}/response.body`, `exchanges/${id}/response.body?decoded=1`]) {
    const { headers, text } = await own.ask(path)
    expect(text).toContain('<script>')
    expect(headers.get('content-type')).toBe('application/octet-stream')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  }
})

test('one token for each user, of 256 bits: an open page survives the next start', async () => {
  await using other = await startTunnel({ fetch: () => new Response('hi'), inspect: true })
  const second = new InspectorApi(other.client)
  expect(second.token).toBe(api.token)
  expect(second.token).toMatch(/^[\w-]{43}$/)
})

test('it proves that it knows the token, for its own origin and each nonce, to who has none', async () => {
  const nonce = 'ab'.repeat(32)
  const ask = (host: string, given = nonce, ...lines: string[]) =>
    raw([`GET /api/v1/proof?nonce=${given} HTTP/1.1`, `Host: ${host}`, ...lines])
  const proof = (host: string) =>
    createHmac('sha256', api.token).update(`inspector\nhttp://${host}\n${nonce}`).digest('hex')
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]
  for (const host of hosts) expect(await ask(host)).toEndWith(`{"proof":"${proof(host)}"}`)
  const [own = ''] = hosts
  expect(await ask(own, 'cd'.repeat(32))).not.toContain(proof(own))
  for (const bad of ['', 'ab', 'AB'.repeat(32), `${nonce}00`, `${'ab'.repeat(31)}%0a0`])
    expect(await ask(own, bad)).toContain('OPTION_INVALID')
  // No program at another port gets its proof from here, and no other page of the browser.
  for (const answer of [
    await ask(`127.0.0.1:${port + 1}`),
    await ask('evil.example'),
    await ask(own, nonce, 'Origin: https://evil.example'),
    await ask(own, nonce, 'Sec-Fetch-Site: same-site'),
  ])
    expect(answer).toContain('INSPECT_REFUSED')
  for (const path of ['/api/v1/proof/', '/api/v1//proof', '/api/v1/proof/1', '/api/v1/proof%2f..%2fsession'])
    expect(await raw([`GET ${path}?nonce=${nonce} HTTP/1.1`, `Host: ${own}`])).toContain(
      'INSPECT_TOKEN_REFUSED',
    )
})

test('every answer, a refusal included, may not be framed, cached or sniffed', async () => {
  for (const answer of [
    await api.ask('session'),
    await api.ask('nothing'),
    await fetch(`${api.base}/api/v1/session`),
  ]) {
    expect(answer.headers.get('x-frame-options')).toBe('DENY')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    expect(answer.headers.get('set-cookie')).toBeNull()
  }
})
