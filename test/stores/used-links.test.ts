// Links that work once: used is used, also in another process, after a restart, and when there is no room.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guarding, openUsedLinks, TunnelClient } from '../../src/index.ts'
import { SqliteUsedLinks } from '../../src/stores/sqlite-used-links.ts'
import { ask } from '../support/ask.ts'
import { codeOf } from '../support/events.ts'
import { startServer } from '../support/tunnel.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-links-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('a link is used once, by whoever shares the file, until it would have expired', () => {
  const path = join(folder, 'shared.db')
  const [one, other] = [new SqliteUsedLinks(path), new SqliteUsedLinks(path)]
  const later = Date.now() + 60_000
  expect([one.has('a'), one.use('a', later), other.has('a'), other.use('a', later)]).toEqual([
    false,
    true,
    true,
    false,
  ])
  expect(other.use('over', Date.now() - 1)).toBe(true)
  expect(one.has('over')).toBe(false)
  one.close()
  other.close()
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test('without room no link is used, and expired ones make room', () => {
  const links = new SqliteUsedLinks(join(folder, 'small.db'), 2)
  const later = Date.now() + 60_000
  expect([links.use('a', Date.now() - 1), links.use('b', later), links.use('c', later)]).toEqual([
    true,
    true,
    true,
  ])
  expect(links.use('d', later)).toBe(false)
  links.close()
})

test('a file that is none is OPTION_INVALID', async () => {
  const path = join(folder, 'broken.db')
  await writeFile(path, 'this is no database')
  expect(await codeOf(openUsedLinks(path))).toBe('OPTION_INVALID')
})

test('a link that was used stays so when the server starts again, and one of another tunnel works', async () => {
  const path = join(folder, 'restart.db')
  const secret = 's'.repeat(32)
  const press = (port: number, url: string) =>
    ask(port, 'app.localhost', { method: 'POST', path: new URL(url).pathname })
  const run = async (use: (port: number, link: () => string) => Promise<void>, key = secret) => {
    const usedLinks = await openUsedLinks(path)
    await using server = await startServer({ guarding: guarding({ usedLinks: async () => usedLinks }) })
    const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
    const guard = { links: true, secret: key }
    const tunnel = await client.http({ subdomain: 'app', guard, fetch: () => new Response('here') })
    await use(server.port, () => tunnel.link({ once: true }).url)
    await client.disconnect()
    usedLinks.close()
  }
  let url = ''
  await run(async (port, link) => {
    url = link()
    expect((await press(port, url)).status).toBe(303)
    expect((await press(port, url)).code).toBe('LINK_REFUSED')
  })
  await run(async (port, link) => {
    expect((await press(port, url)).code).toBe('LINK_REFUSED')
    expect((await ask(port, 'app.localhost', { path: new URL(url).pathname })).code).toBe('LINK_REFUSED')
    expect((await press(port, link())).status).toBe(303)
  })
})

test('one token has half of the room for links that were used, whatever their secrets; another one has the rest', async () => {
  const file = join(folder, 'shares.db')
  const usedLinks = new SqliteUsedLinks(file, 8)
  await using server = await startServer({
    tokens: ['greedy-token-1234', 'other-token-12345'],
    guarding: guarding({ usedLinks: async () => usedLinks }),
  })
  const used = async (token: string, count: number) => {
    const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}`, token })
    let opened = 0
    for (let at = 0; at < count; at++) {
      const guard = { links: true, secret: `${at}`.repeat(32) }
      const tunnel = await client.http({ subdomain: `app-${at}`, guard, fetch: () => new Response('here') })
      const path = new URL(tunnel.link({ once: true }).url).pathname
      const { status } = await ask(server.port, `app-${at}.localhost`, { method: 'POST', path })
      if (status === 303) opened++
      await tunnel.close()
    }
    await client.disconnect()
    return opened
  }
  expect([await used('greedy-token-1234', 7), await used('other-token-12345', 3)]).toEqual([4, 2])
  usedLinks.close()
})
