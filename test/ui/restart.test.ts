// A client that ends and starts again: the page goes on by itself, and never shows one request under the name of another.

import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { InspectorPage } from '../support/inspector-page.ts'
import { describeWith } from '../support/needs.ts'

setDefaultTimeout(30_000)

const app = () => Response.json({ ok: true })

describeWith(['chromium'], 'in a browser', () => {
  test('an open tab survives the end of its client: readable, no replay, and live again with the next one', async () => {
    await using own = await InspectorPage.open(app)
    const { page, client, server } = own
    await own.visit('/one')
    await own.visit('/two')
    await own.choose('/one')
    const url = client.inspectorUrl ?? ''
    const port = Number(new URL(url).port)
    await client.disconnect()
    await page.getByRole('alert').getByText('The client on this machine has stopped.').waitFor()
    // What is shown stays, and what cannot be read says so: the selected request is never under another one's head.
    await page.locator('.detail h2', { hasText: '/one' }).waitFor()
    const button = page.getByRole('button', { name: 'Replay', exact: true })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
    await own.row('/two').click()
    await page.getByRole('heading', { name: 'cannot be read' }).waitFor()
    expect(await page.locator('.detail h2').allTextContents()).not.toContain('/one')
    expect(await button.count()).toBe(0)
    const next = new TunnelClient({ server: server.url, subdomain: 'again', fetch: app, inspect: { port } })
    await next.connect()
    try {
      // One token for each user.
      expect(next.inspectorUrl).toBe(url)
      await page.locator('.live', { hasText: 'Live' }).waitFor()
      await page.getByText('The client on this machine has stopped.').waitFor({ state: 'detached' })
      await page.getByRole('heading', { name: /is gone$/ }).waitFor()
      await page.getByRole('button', { name: 'Back to the list' }).click()
      await page.getByText('Waiting for the next request').waitFor()
      await fetch(`http://127.0.0.1:${server.port}/three`, { headers: { host: 'again.localhost' } })
      await own.row('/three').waitFor()
      expect(await page.title()).toBe('again · localtunnels inspector')
    } finally {
      await next.disconnect()
    }
  })

  test('another request is chosen while one is read: the pane says so until it is here, and actions are off', async () => {
    await using own = await InspectorPage.open(app)
    const { page } = own
    await own.visit('/one')
    await own.visit('/two')
    await own.choose('/one')
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const isDetail = (url: URL) => /\/exchanges\/\d+$/.test(url.pathname)
    await page.route(isDetail, async route => {
      await released
      await route.continue().catch(() => {})
    })
    await own.row('/two').click()
    await page.locator('.detail [aria-busy]').waitFor()
    expect(await page.getByRole('button', { name: 'Replay', exact: true }).count()).toBe(0)
    await page.keyboard.press('r')
    release()
    await page.locator('.detail h2', { hasText: '/two' }).waitFor()
    await page.unrouteAll({ behavior: 'wait' })
    expect(await page.locator('.rows .row', { hasText: 'replay of' }).count()).toBe(0)
  })
})

test('the port is 4040, and the next one when that is taken; the token is one file of the user', async () => {
  const state = mkdtempSync(join(tmpdir(), 'localtunnels-state-'))
  const before = process.env.XDG_STATE_HOME
  process.env.XDG_STATE_HOME = state
  const { startServer } = await import('../support/tunnel.ts')
  const server = await startServer()
  const clients = ['one', 'two'].map(
    subdomain => new TunnelClient({ server: server.url, subdomain, fetch: app, inspect: true }),
  )
  try {
    for (const client of clients) await client.connect()
    const [first, second] = clients.map(({ inspectorUrl }) => new URL(inspectorUrl ?? ''))
    expect(Number(first!.port)).toBeWithin(4_040, 4_061)
    expect(Number(second!.port)).toBeGreaterThan(Number(first!.port))
    expect(second!.hash).toBe(first!.hash)
    const file = join(state, 'localtunnels/inspector-token')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await Bun.file(file).text()).toBe(`${first!.hash.slice(1)}\n`)
  } finally {
    for (const client of clients) await client.disconnect()
    await server.stop()
    if (before === undefined) delete process.env.XDG_STATE_HOME
    else process.env.XDG_STATE_HOME = before
    rmSync(state, { recursive: true })
  }
})
