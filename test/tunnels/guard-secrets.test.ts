// Links and logins have secrets in their addresses: nothing that is written down of a request may let its reader in.

import { expect, test } from 'bun:test'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shownTarget } from '../../src/guard.ts'
import { accessLog, guarding, TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { InspectorApi } from '../support/inspector.ts'
import { rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'

test('no event, log or report has a link that works, or the query of a login; they have the id and the reason', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  const file = join(folder, 'access.log')
  const log = accessLog({ file, query: true })
  const written: unknown[] = []
  const server = await startServer({
    guarding: guarding(),
    observers: [
      log,
      { name: 'all', began: seen => written.push(seen), ended: (...both) => written.push(both) },
    ],
  })
  server.on('request', event => written.push(event))
  const client = new TunnelClient({ server: server.url, inspect: { port: 0, rate: 0 } })
  client.on('request', event => written.push(event))
  client.on('response', event => written.push(event))
  try {
    const guard = { links: true, password: 'correct horse' }
    const tunnel = await client.http({ fetch: () => new Response('app'), subdomain: 'shop', guard })
    const links = [tunnel.link({ path: '/a' }), tunnel.link({ path: '/b', once: true })]
    const inspector = new InspectorApi(client)
    for (const { url } of links) {
      const { pathname } = new URL(url)
      expect((await ask(server.port, 'shop.localhost', { path: pathname })).status).toBeOneOf([200, 303])
      await ask(server.port, 'shop.localhost', { path: `${pathname}?x=1`, method: 'PUT' })
      const visitor = await rawDial(server.port)
      await visitor.send(`GET http://shop.localhost${pathname} HTTP/1.1\r\nHost: shop.localhost\r\n\r\n`)
      await visitor.until('\r\n\r\n')
      visitor.socket.terminate()
    }
    const callback = '/.localtunnels/callback?code=s3cret&state=st4te'
    expect((await ask(server.port, 'shop.localhost', { path: callback })).code).toBe('LOGIN_REFUSED')
    const row = await inspector.ended('path:/.localtunnels/callback')
    expect(row.path).toBe('/.localtunnels/callback')
    written.push(await inspector.rows())
    await log.close()
    await server.stop()
    written.push(await readFile(file, 'utf8'))
    const text = JSON.stringify(written)
    for (const { url, id } of links) {
      const [, signature = ''] = /\.([\w-]+)$/.exec(url) ?? []
      expect(signature).toHaveLength(43)
      expect(text).not.toContain(signature)
      expect(text).toContain(`/.localtunnels/link/${id}`)
    }
    expect(text).not.toContain('s3cret')
    expect(text).not.toContain('st4te')
    expect(written).toContainEqual(
      expect.objectContaining({ path: '/.localtunnels/callback', reason: 'state_unknown' }),
    )
    expect(text).toContain('\\"reason\\":\\"state_unknown\\"')
  } finally {
    await client.disconnect()
    await server.stop()
    await rm(folder, { recursive: true })
  }
})

test('paths of the app are shown as they are, and what is no link is cut too', () => {
  for (const path of ['/', '/link/a.b', '/x?/.localtunnels/link/a', '*', '/.localtunnels', 'http://a.b/c?d'])
    expect(shownTarget(path)).toBe(path)
  for (const [path, shown] of [
    ['/.localtunnels/link/a.b', '/.localtunnels/link/...'],
    ['/.localtunnels/link/a.b?x#y', '/.localtunnels/link/...'],
    ['/.localtunnels/link/eyJpZCI6IlxyXG4ifQ.b', '/.localtunnels/link/...'],
    ['/.localtunnels/link', '/.localtunnels/link'],
    ['http://a.b/.localtunnels/callback?code=1', 'http://a.b/.localtunnels/callback'],
    ['/.localtunnels/login?to=/', '/.localtunnels/login'],
  ] as const)
    expect(shownTarget(path)).toBe(shown)
})
