// What an operator asks of the page, with 120 tunnels and five tokens: who uses the most, why is this tunnel slow, which token to revoke.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { attentionOf } from '../../src/parts/admin/needs.ts'
import type { TunnelRow } from '../../src/parts/admin/rows.ts'
import { ADMIN_TOKEN, askAdmin } from '../support/admin.ts'
import { type BusyServer, busyServer } from '../support/busy-server.ts'
import { describeWith } from '../support/needs.ts'

setDefaultTimeout(60_000)

const root = resolve(import.meta.dir, '../..')
const AXE = 'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))'

test('many of one kind hide no other: the worst three are listed, and how many more there are', () => {
  const row = (name: string, ms: number) => {
    const durations = Array.from({ length: 15 }, () => 0)
    durations[ms] = 10
    return { name, state: 'up', recent: { requests: 10, errors: 0, durations } } as unknown as TunnelRow
  }
  const old = { name: 'old', createdAt: '2020-01-01T00:00:00Z', scope: {} }
  const tunnels = Array.from({ length: 9 }, (_, at) => row(`slow-${at}`, at === 7 ? 13 : 12))
  const needs = attentionOf({ tunnels, tokens: [old], certificates: [], servers: [] } as never)
  expect(needs.map(({ kind, more }) => [kind, more ?? 0])).toEqual([
    ['slow', 0],
    ['slow', 0],
    ['slow', 6],
    ['token-unused', 0],
  ])
  expect(needs[0]?.subject).toBe('slow-7')
})

describeWith(['chromium'], 'an operator', () => {
  let browser: Browser
  let busy: BusyServer
  let page: Page

  async function opened(hash: string, scheme: 'light' | 'dark' = 'light', width = 1440): Promise<Page> {
    const own = await browser.newPage({ colorScheme: scheme, viewport: { width, height: 900 } })
    await own.goto(`${busy.server.adminUrl}/#${ADMIN_TOKEN}`)
    await own.getByText('Live').waitFor()
    await own.evaluate(`location.hash = '${hash}'`)
    await own.locator('.loading').waitFor({ state: 'detached' })
    return own
  }
  const go = async (hash: string) => {
    await page.evaluate(`location.hash = '${hash}'`)
    await page.locator('.loading').waitFor({ state: 'detached' })
  }
  /** Of a column of the table in sight. */
  const column = (at: number) => page.locator(`main tbody tr td:nth-child(${at})`).allTextContents()

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
    busy = await busyServer()
    page = await opened('#/overview')
  })
  afterAll(async () => {
    await browser?.close()
    await busy?.[Symbol.asyncDispose]()
  })

  test('the overview: rates, errors, latency, transfer; the busiest; what needs attention, with links', async () => {
    const busiest = page.getByRole('region', { name: 'Busiest tunnels' })
    await busiest.getByRole('row', { name: /^shop 40 0 .*ms shop-prod/ }).waitFor()
    const names = await busiest.locator('tbody .name').allTextContents()
    expect(names.slice(0, 3)).toEqual(['shop', 'cart', 'hooks'])
    expect(await page.locator('.four .spark').count()).toBe(4)
    await page.getByText('7 of 7 come from').waitFor()
    await page.getByText(/in flight, \d+ % (?:more|fewer) than an hour ago/).waitFor()
    const needs = await page.getByRole('region', { name: 'Needs attention' }).locator('li').allTextContents()
    expect(needs.map(text => text.replace(/[\d.]+ (?:%|m?s)$/, ''))).toEqual([
      'docs-14 fails too often',
      'ci-preview token ends2 days',
      expect.stringContaining('chat is slow'),
      'docs token ends9 days',
      'old-laptop token not used200 days',
    ])
    await page.getByRole('link', { name: 'chat' }).first().click()
    await page.getByRole('complementary').getByRole('heading', { name: 'chat Up' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#/tunnels/chat')
    await page.goBack()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  test('who uses the most? columns sort, the largest first; the head stays; numbers stand at the right', async () => {
    await go('#/tunnels')
    expect((await column(1)).slice(0, 3)).toEqual(['shop', 'cart', 'hooks'])
    expect(await column(1)).toHaveLength(100)
    await page.getByRole('button', { name: 'p95' }).click()
    await page
      .getByRole('columnheader', { name: 'p95' })
      .and(page.locator('[aria-sort="descending"]'))
      .waitFor()
    await page.locator('main tbody tr').first().getByText('chat').waitFor()
    expect(new URL(page.url()).hash).toBe('#/tunnels?sort=-p95')
    await page.getByRole('button', { name: 'Name' }).click()
    await page.locator('main tbody tr').first().getByText('cart').waitFor()
    const style = await page.evaluate(`(() => {
      const cell = document.querySelector('main td.num')
      const { textAlign, fontVariantNumeric } = getComputedStyle(cell)
      return [textAlign, fontVariantNumeric]
    })()`)
    expect(style).toEqual(['right', 'tabular-nums'])
    const top = () => page.locator('main thead th').first().boundingBox()
    const before = await top()
    await page.locator('.tall').evaluate(one => one.scrollTo(0, 1_500))
    expect(await top()).toEqual(before)
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.locator('main tbody tr').nth(119).waitFor()
  })

  test('each view has its filter: by the name of a token too, and one does not go to another', async () => {
    await go('#/tunnels')
    await page.getByLabel('Filter tunnels').fill('anna')
    await page.locator('main tbody tr').nth(2).waitFor({ state: 'hidden' })
    expect((await column(1)).sort()).toEqual(['chat', 'media'])
    await page.getByRole('navigation').getByRole('link', { name: 'Clients' }).click()
    expect(await page.getByLabel('Filter clients').inputValue()).toBe('')
    await page.locator('main tbody tr').nth(3).waitFor()
    await page.goBack()
    await page.locator('main tbody tr').nth(2).waitFor({ state: 'hidden' })
    expect(await page.getByLabel('Filter tunnels').inputValue()).toBe('anna')
    await page.getByLabel('Filter tunnels').fill('')
    await page.getByRole('button', { name: /^With errors 1/ }).click()
    await page.locator('main tbody tr').nth(1).waitFor({ state: 'hidden' })
    expect(await column(1)).toEqual(['docs-14'])
  })

  test('why is this tunnel slow? its sheet: latency, client, token, graphs; Escape closes it', async () => {
    await go('#/tunnels/docs-14')
    const sheet = page.getByRole('complementary')
    await sheet.getByText(/round trip/).waitFor()
    expect(await sheet.locator('.nums dt').allTextContents()).toEqual([
      'Requests/min',
      'Errors',
      'p50',
      'p95',
      'In flight',
    ])
    await sheet.getByText('43.8 %').waitFor()
    await sheet.getByRole('link', { name: 'docs', exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await sheet.waitFor({ state: 'hidden' })
    expect(new URL(page.url()).hash).toBe('#/tunnels')
    await page.goBack()
    await sheet.waitFor()
    await go('#/tunnels')
  })

  test('graphs: gaps are gaps, nobody is zero, the end is now; values by keyboard and pointer', async () => {
    await go('#/traffic?tunnel=docs-14')
    const graphs = page.getByRole('slider')
    const read = () => graphs.getAttribute('aria-valuetext')
    // The last minute that is over is read first; a bar of a minute is 0 in width only where nobody came.
    await page.locator('.graph .gap').first().waitFor()
    expect(await page.locator('.graph').first().locator('.gap').count()).toBeGreaterThanOrEqual(4)
    expect(await page.locator('.graph').count()).toBe(3)
    await graphs.focus()
    expect(Number(await graphs.getAttribute('aria-valuenow'))).toBe(58)
    await page.keyboard.press('End')
    expect(await read()).toMatch(/^\d\d:\d\d, so far: /)
    const texts: (string | null)[] = []
    for (let minute = 59; minute >= 0; minute--) {
      texts.push(await read())
      await page.keyboard.press('ArrowLeft')
    }
    const missing = texts.filter(text => text?.endsWith('not measured')).length
    expect(missing).toBeGreaterThanOrEqual(4)
    expect(missing).toBeLessThanOrEqual(6)
    expect(texts.filter(text => text?.includes('requests 0, errors 0, p95 —'))).not.toEqual([])
    expect(texts.filter(text => text?.includes('errors 20, p95')).length).toBeGreaterThan(40)
    await page.keyboard.press('End')
    const last = await read()
    const box = await graphs.boundingBox()
    await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + 40)
    expect(await read()).not.toBe(last)
    for (const [range, points] of [
      ['24 h', 24],
      ['7 d', 168],
    ] as const) {
      await page.getByRole('button', { name: range }).click()
      await page.locator(`[role=slider][aria-valuemax="${points - 1}"]`).waitFor()
    }
    expect(new URL(page.url()).hash).toContain('range=week')
  })

  test('which token should I revoke? use by token; a confirmation with the effect in numbers', async () => {
    await go('#/tokens')
    expect(await column(1)).toEqual(['shop-prod', 'docs', 'ci-preview', 'anna', 'old-laptop'])
    await page.getByRole('button', { name: 'Last used' }).click()
    await page.locator('main tbody tr').first().getByText('old-laptop').waitFor()
    await page.getByRole('button', { name: 'Actions for ci-preview' }).click()
    await page.getByRole('menuitem', { name: 'Revoke…' }).click()
    await page.getByText('Clients with it (1) and their tunnels (75) are disconnected at once.').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
  })

  test('a toast is gone after six seconds', async () => {
    await go('#/tunnels')
    await page.getByRole('button', { name: 'Actions for shop' }).click()
    await page.getByRole('menuitem', { name: 'Probe now' }).click()
    await page.locator('.toast').waitFor()
    await page.locator('.toast').waitFor({ state: 'detached', timeout: 8_000 })
  })

  test('a menu by keyboard: arrows, and Escape gives the focus back', async () => {
    await go('#/tunnels')
    const button = page.getByRole('button', { name: 'Actions for cart' })
    await button.focus()
    await page.keyboard.press('Enter')
    await page.locator(':focus', { hasText: 'Open details' }).waitFor()
    await page.keyboard.press('ArrowDown')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Open the address')
    await page.keyboard.press('Escape')
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Actions for cart')
    const menus = await page.locator('main tbody tr').first().getByRole('button').count()
    expect(menus).toBe(1)
  })

  test('one request for what is in sight, and not the whole list', async () => {
    const own = await opened('#/tunnels')
    const asked: string[] = []
    own.on('request', request => asked.push(new URL(request.url()).pathname))
    await own.waitForRequest(/views/)
    await own.waitForRequest(/views/)
    expect(new Set(asked)).toEqual(new Set(['/api/v1/views/tunnels']))
    const { body } = await askAdmin(busy.server, '/views/overview')
    expect(JSON.stringify(body).length).toBeLessThan(20_000)
    await own.close()
  })

  test('what cannot be asked is refused', async () => {
    for (const path of ['tunnels?sort=nothing', 'tunnels?only=x', 'tunnels?limit=0', 'traffic?range=year'])
      expect([path, (await askAdmin(busy.server, `/views/${path}`)).status]).toEqual([path, 400])
    expect((await askAdmin(busy.server, '/views/nothing')).status).toBe(404)
  })

  test('on a phone a tunnel is a card, and the list is not endless', async () => {
    const own = await opened('#/tunnels', 'dark', 390)
    const height = await own.locator('.tall').evaluate(one => one.scrollHeight)
    expect(height).toBeLessThan(4_000)
    await own.getByRole('link', { name: 'shop', exact: true }).click()
    await own.getByRole('complementary').waitFor()
    await own.goBack()
    await own.getByRole('complementary').waitFor({ state: 'hidden' })
    await own.close()
  })

  for (const scheme of ['light', 'dark'] as const)
    for (const width of [1440, 1024, 390])
      test(`${scheme}, ${width} pixels: nothing for axe in sheet, menu and confirmation, nothing wider than the screen`, async () => {
        const own = await opened('#/tunnels/docs-14', scheme, width)
        await own.evaluate(await Bun.file(join(root, 'node_modules/axe-core/axe.min.js')).text())
        const look = async (name: string) => {
          await own.evaluate('Promise.all(document.getAnimations().map(one => one.finished))')
          expect([name, await own.evaluate(AXE)]).toEqual([name, []])
          expect(await own.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
          if (process.env.LT_SCREENSHOTS)
            await own.screenshot({
              path: `${process.env.LT_SCREENSHOTS}/admin-${name}-${scheme}-${width}.png`,
            })
        }
        await own.getByRole('slider').waitFor()
        await look('sheet')
        await own.keyboard.press('Escape')
        await own.getByRole('button', { name: 'Actions for hooks' }).click()
        await look('menu')
        await own.getByRole('menuitem', { name: 'Block…' }).click()
        await look('confirm')
        await own.close()
      })
})
