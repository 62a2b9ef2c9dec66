// The list of the inspector: it does not move under the pointer, and says where one is.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { InspectorPage } from '../support/inspector-page.ts'
import { describeWith } from '../support/needs.ts'

setDefaultTimeout(60_000)

interface Scrolled {
  readonly mostRows: number
  readonly height: number
  readonly longestTaskMs: number
  /** The text of the last row. */
  readonly oldest: string
}

/** Scrolls the list to its end, some screens with each frame, and notes what it meets. */
const SCROLL = `async list => {
  window.scrolled = { mostRows: 0, height: 0, longestTaskMs: 0, oldest: '' }
  const { scrolled } = window
  const tasks = new PerformanceObserver(entries => {
    for (const { duration } of entries.getEntries()) scrolled.longestTaskMs = Math.max(scrolled.longestTaskMs, duration)
  })
  tasks.observe({ type: 'longtask' })
  for (let still = 0; still < 60; ) {
    await new Promise(requestAnimationFrame)
    scrolled.mostRows = Math.max(scrolled.mostRows, document.querySelectorAll('.row').length)
    const before = list.scrollTop
    list.scrollTop += 2400
    still = list.scrollTop === before ? still + 1 : 0
  }
  tasks.disconnect()
  scrolled.height = list.scrollHeight
  scrolled.oldest = list.querySelector('.row:last-child').textContent
}`

describeWith(['chromium'], 'in a browser', () => {
  let own: InspectorPage

  beforeAll(async () => {
    own = await InspectorPage.open(() => Response.json({ ok: true }), {
      maxExchanges: 10_000,
      maxBody: 4_096,
    })
  })
  afterAll(() => own?.[Symbol.asyncDispose]())

  test('nothing came yet, and then it comes by itself', async () => {
    await own.page.getByText('Waiting for the first request').waitFor()
    await own.page.getByText('curl -i http://shop.localhost').waitFor()
    await own.visit('/first?a=1')
    await own.row('/first?a=1').waitFor()
  })

  test.each([1, 2, 5])(
    'a row that one aims at is the row that one hits, at %d requests a second: 20 of 20',
    async perSecond => {
      const { page } = own
      await own.all()
      for (let index = 0; index < 30; index++) await own.visit(`/before/${index}`)
      const coming = setInterval(() => void own.visit(`/coming/${Math.random()}`), 1_000 / perSecond)
      let wrong = 0
      for (let look = 0; look < 20; look++) {
        await page.keyboard.press('Escape')
        await page.mouse.move(700, 20)
        // Whatever came is in the list, and the next one is on its way.
        await Bun.sleep(60)
        await page.mouse.move(200, 420)
        const aimed = await page.evaluate<string>("document.elementFromPoint(200, 420).closest('.row').id")
        await Bun.sleep(250)
        await page.mouse.down()
        await page.mouse.up()
        const hit = await page.locator('.rows .row[aria-selected="true"]').getAttribute('id')
        if (hit !== aimed) wrong++
      }
      clearInterval(coming)
      expect(wrong).toBe(0)
    },
  )

  test('those that come while one is chosen, scrolls or has paused wait, and are told', async () => {
    const { page } = own
    await own.all()
    await own.visit('/chosen')
    await own.choose('/chosen')
    const place = await own.row('/chosen').boundingBox()
    await own.visit('/waits')
    await page.getByRole('button', { name: '↑ 1 new' }).waitFor()
    expect(await own.row('/chosen').boundingBox()).toEqual(place)
    await page.getByRole('button', { name: '↑ 1 new' }).click()
    await own.row('/waits').waitFor()
    await page.keyboard.press('Escape')
    await page.mouse.move(700, 20)
    await page.evaluate("document.querySelector('.rows').scrollTop = 200")
    await own.visit('/scrolled')
    await page.getByRole('button', { name: '↑ 1 new' }).waitFor()
    await page.evaluate("document.querySelector('.rows').scrollTop = 0")
    await own.row('/scrolled').waitFor()
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Paused' }).waitFor()
    await own.visit('/paused')
    await page.getByRole('button', { name: '↑ 1 new' }).waitFor()
    expect(await own.row('/paused').count()).toBe(0)
    await page.keyboard.press('Space')
    await own.row('/paused').waitFor()
  })

  test('one that does not match the filter any more stays as long as the pointer is over the list', async () => {
    const { page } = own
    await own.all()
    await own.visit('/pinned/one')
    await own.visit('/pinned/two')
    await own.row('/pinned/two').waitFor()
    for (const path of ['/pinned/one', '/pinned/two']) {
      await own.choose(path)
      await page.keyboard.press('p')
      await page.locator('.line2 .tag', { hasText: 'pinned' }).waitFor()
    }
    await page.getByLabel('Filter', { exact: true }).fill('is:pinned path:/pinned/')
    await page.locator('.count', { hasText: '2 of' }).waitFor()
    await own.row('/pinned/two').hover()
    expect(await page.locator('.rows .row').count()).toBe(2)
    const rows = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.rows .row')].map(({ id }) => id.slice(4))",
    )
    const [base = '', token = ''] = (own.client.inspectorUrl ?? '').split('/#')
    await fetch(`${base}/api/v1/exchanges/${rows[0]}/pin`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"isPinned":false}',
    })
    await Bun.sleep(300)
    expect(await page.locator('.rows .row').count()).toBe(2)
    await own.all()
    await page.locator('.rows .row').nth(1).waitFor({ state: 'detached' })
    await page.getByLabel('Filter', { exact: true }).fill('')
    await own.choose('/pinned/one')
    await page.keyboard.press('p')
    await page.locator('.line2 .tag', { hasText: 'pinned' }).waitFor({ state: 'detached' })
  })

  test('the focus is around the chosen row, whose highlight goes to the edge of the list', async () => {
    const { page } = own
    await own.json('/ring', '{}')
    const filter = page.getByLabel('Filter', { exact: true })
    // All of it is in sight, so there is nothing to scroll.
    await filter.fill('path:/ring')
    await own.row('/ring').click()
    await page.locator('.detail h2', { hasText: '/ring' }).waitFor()
    await page.locator('.rows').focus()
    await page.keyboard.press('Home')
    const [list, row] = await page.evaluate<[string, string]>(
      `['.rows', '.rows [aria-selected="true"]'].map(one => getComputedStyle(document.querySelector(one)).outlineColor)`,
    )
    expect(list).toBe('rgba(0, 0, 0, 0)')
    expect(row).not.toBe(list)
    const [outer, inner] = await page.evaluate<[number, number]>(
      `['.rows', '.rows [aria-selected="true"]'].map(one => document.querySelector(one).getBoundingClientRect().right)`,
    )
    expect(inner).toBe(outer)
    await filter.fill('')
    await own.all()
  })

  test('delete and clear can be undone; what is undone never left the client', async () => {
    const { page } = own
    await own.visit('/removed')
    await own.choose('/removed')
    await page.keyboard.press('x')
    await own.says('Deleted #')
    expect(await own.row('/removed').count()).toBe(0)
    await page.getByRole('button', { name: 'Undo' }).click()
    await own.row('/removed').waitFor()
    await page.locator('.detail h2', { hasText: '/removed' }).waitFor()
    await page.getByRole('button', { name: 'Clear', exact: true }).click()
    await own.says('Cleared')
    await own.visit('/behind-the-clear')
    await own.row('/behind-the-clear').waitFor()
    expect(await own.row('/removed').count()).toBe(0)
    await page.getByRole('button', { name: 'Undo' }).click()
    await own.row('/removed').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Clear', exact: true }).click()
    await own.visit('/later')
    // What is said goes, and with it what could be undone; those that came meanwhile stay.
    await page.locator('.toast').waitFor({ state: 'detached', timeout: 10_000 })
    await own.row('/later').waitFor()
    await page.reload()
    await own.row('/later').waitFor()
    expect(await own.row('/removed').count()).toBe(0)
  })

  test('the address is the place: reload, Back and a link lead there', async () => {
    const { page } = own
    await own.visit('/place?of=one')
    await own.visit('/place?of=two')
    await own.row('/place?of=two').waitFor()
    await own.choose('/place?of=one')
    await page.getByLabel('Filter', { exact: true }).fill('path:/place')
    await page.waitForURL(/#\/requests\/\d+\?filter=path:\/place$/)
    await page.reload()
    await page.locator('.detail h2', { hasText: 'of=one' }).waitFor()
    expect(await page.getByLabel('Filter', { exact: true }).inputValue()).toBe('path:/place')
    await own.row('of=two').click()
    await page.locator('.detail h2', { hasText: 'of=two' }).waitFor()
    await page.keyboard.press('d')
    await page.waitForURL(/\/compare\/\d+/)
    await page.goBack()
    await page.goBack()
    await page.locator('.detail h2', { hasText: 'of=one' }).waitFor()
    // The token is in no address behind the first one.
    expect(page.url()).not.toContain((own.client.inspectorUrl ?? '').split('#')[1]!)
    await page.goto(`${page.url().split('#')[0]}#/requests/999999`)
    await page.getByRole('heading', { name: 'Request #999999 is gone' }).waitFor()
    await page.getByRole('button', { name: 'Back to the list' }).click()
    await own.row('/place').waitFor()
  })

  test('the filter narrows the list, also for what comes, suggests, counts, and says where it is wrong', async () => {
    const { page } = own
    const field = page.getByLabel('Filter', { exact: true })
    await own.all()
    await own.visit('/one')
    await own.visit('/two')
    await own.row('/one').waitFor()
    await own.row('/two').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('path:/two')
    await own.row('/one').waitFor({ state: 'detached' })
    await own.visit('/one')
    await own.visit('/two?again')
    await own.row('/two?again').waitFor()
    expect(await own.row('/one').count()).toBe(0)
    await page.locator('.count', { hasText: /^2 of \d+$/ }).waitFor()
    await field.fill('slower:soon')
    await page.getByRole('alert').getByText('of the filter').waitFor()
    await field.fill('path:/none')
    await page.getByRole('heading', { name: 'No request matches' }).waitFor()
    await page.getByRole('button', { name: 'Clear filter' }).click()
    await own.row('/one').waitFor()
    await field.fill('is:err')
    await page.getByRole('option', { name: 'is:error' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    expect(await field.inputValue()).toBe('is:error')
    await page.getByRole('button', { name: 'Errors' }).click()
    expect(await field.inputValue()).toBe('')
    await own.row('/one').waitFor()
  })

  test('a search that takes long says so, and ends when another one begins', async () => {
    const { page } = own
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const isSearch = (url: URL) => url.pathname === '/api/v1/exchanges' && url.search.includes('body')
    await page.route(isSearch, async route => {
      await released
      await route.abort().catch(() => {})
    })
    const failed = page.waitForEvent('requestfailed', request => isSearch(new URL(request.url())))
    await page.getByLabel('Filter', { exact: true }).fill('body:needle')
    await page.getByText('searching…').waitFor()
    await page.getByLabel('Filter', { exact: true }).fill('path:/none')
    expect((await failed).failure()?.errorText).toContain('ABORTED')
    await page.getByRole('heading', { name: 'No request matches' }).waitFor()
    release()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Clear filter' }).click()
  })

  test('the filter is typed while requests come', async () => {
    const { page } = own
    const coming = setInterval(() => void own.visit('/noise'), 20)
    const field = page.getByLabel('Filter', { exact: true })
    await field.pressSequentially('path:/none', { delay: 30 })
    await page.getByRole('heading', { name: 'No request matches' }).waitFor()
    clearInterval(coming)
    expect(await field.inputValue()).toBe('path:/none')
    await page.getByRole('button', { name: 'Clear filter' }).click()
    await own.row('/noise').waitFor()
  })

  test('ten thousand requests scroll: only those in sight are in the document, and no frame takes long', async () => {
    const { page } = own
    for (let index = 0; index < 10_000; index += 100)
      await Promise.all(Array.from({ length: 100 }, (_, one) => own.visit(`/many/${index + one}`)))
    await page.reload()
    await page.locator('.rows .row').first().waitFor()
    await page.evaluate(`(${SCROLL})(document.querySelector('.rows'))`)
    const seen = await page.evaluate<Scrolled>('scrolled')
    expect(seen.mostRows).toBeLessThan(60)
    expect(seen.oldest).toContain('/many/')
    expect(seen.height).toBe(10_000 * 32)
    // A machine that has other things to do makes frames late; a list that draws all of its rows takes seconds for one.
    expect(seen.longestTaskMs).toBeLessThan(1_000)
    await page.locator('.rows').focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('End')
    await page.locator('.detail h2', { hasText: '/many/' }).waitFor()
    expect(await page.locator('.rows .row').count()).toBeLessThan(60)
  })
})
