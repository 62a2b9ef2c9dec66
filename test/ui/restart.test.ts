// A client that ends and starts again: the page goes on by itself, and never shows one request under the name of another.

import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { InspectorPage } from '../support/inspector-page.ts'
import { describeWith } from '../support/needs.ts'
import { within } from '../support/within.ts'

setDefaultTimeout(60_000)

const app = () => Response.json({ ok: true })

/** A client of its own process, which can be killed. */
const CLIENT = `
  import { TunnelClient } from ${JSON.stringify(join(import.meta.dir, '../../src/index.ts'))}
  const fetch = () => Response.json({ ok: true })
  const client = new TunnelClient({ server: process.env.SERVER, subdomain: 'killed', fetch, inspect: { port: 0 } })
  await client.connect()
  console.log(client.inspectorUrl)
`

describeWith(['chromium'], 'in a browser', () => {
  test('an open tab survives the end of its client: readable, no replay, and live again with the next one', async () => {
    await using own = await InspectorPage.open(app)
    const { page, client, server } = own
    await own.visit('/one')
    await own.visit('/two')
    // Rows that come while the pointer is over the list wait.
    await own.row('/two').waitFor()
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

  test('another program that takes the port of a killed client never gets the token, and the page goes on with the next client', async () => {
    await using own = await InspectorPage.open(app)
    const { context, server } = own
    const child = Bun.spawn([process.execPath, '-e', CLIENT], {
      env: { ...process.env, SERVER: server.url },
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const first = await child.stdout.getReader().read()
    const url = new TextDecoder().decode(first.value).trim()
    const { hash, port } = new URL(url)
    const token = hash.slice(1)
    // One token for each user: the program below asks an inspector that has it.
    const [relayed = ''] = (own.client.inspectorUrl ?? '').split('/#')
    expect(own.client.inspectorUrl).toEndWith(token)
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    await page.goto(url)
    await page.locator('.live', { hasText: 'Live' }).waitFor()
    const visit = (path: string) =>
      fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { host: 'killed.localhost' } })
    for (const path of ['/one', '/two']) {
      await visit(path)
      await page.locator('.rows .row', { hasText: path }).waitFor()
    }
    child.kill('SIGKILL')
    await child.exited
    await page.getByRole('alert').getByText('The client on this machine has stopped.').waitFor()
    const seen: string[] = []
    const { promise: wasAsked, resolve } = Promise.withResolvers<void>()
    const other = Bun.serve({
      port: Number(port),
      hostname: '127.0.0.1',
      async fetch(request) {
        seen.push(JSON.stringify([request.url, [...request.headers], await request.text()]))
        if (seen.length === 5) resolve()
        const { pathname, search } = new URL(request.url)
        return fetch(`${relayed}${pathname}${search}`)
      },
    })
    await page.locator('.rows .row', { hasText: '/one' }).click()
    await within(wasAsked, 'five requests')
    expect(seen.join('\n')).not.toContain(token)
    await page.getByRole('alert').getByText('has not proven').waitFor()
    // What a reload would give to the page of another program.
    expect(await page.evaluate<string>('JSON.stringify({ ...sessionStorage })')).not.toContain(token)
    await other.stop(true)
    const next = new TunnelClient({
      server: server.url,
      subdomain: 'again',
      fetch: app,
      inspect: { port: Number(port) },
    })
    await next.connect()
    try {
      await page.locator('.live', { hasText: 'Live' }).waitFor()
      expect(await page.getByRole('alert').count()).toBe(0)
      await page.reload()
      await page.locator('.live', { hasText: 'Live' }).waitFor()
    } finally {
      await next.disconnect()
    }
  })

  test('a page whose filter is wrong notices the end of its client, too', async () => {
    await using own = await InspectorPage.open(app)
    await own.page.getByLabel('Filter', { exact: true }).fill('slower:soon')
    await own.page.getByRole('alert').getByText('of the filter').waitFor()
    await own.client.disconnect()
    await own.page.getByText('The client on this machine has stopped.').waitFor()
  })

  test('another request is chosen while one is read: the pane says so until it is here, and actions are off', async () => {
    await using own = await InspectorPage.open(app)
    const { page } = own
    await own.visit('/one')
    await own.visit('/two')
    // Rows that come while the pointer is over the list wait.
    await own.row('/two').waitFor()
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
