// The pages that the server shows to visitors, in Chromium: light and dark, narrow and wide, with and without an operator's name.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { TunnelServer } from '../../src/index.ts'
import { describeWith } from '../support/needs.ts'
import { app, type VisitorPages, visitorPages } from '../support/visitor-pages.ts'

setDefaultTimeout(60_000)

const root = resolve(import.meta.dir, '../..')
const AXE = 'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))'
const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 32"><path d="M0 0h64v32H0z"/></svg>'

describeWith(['chromium'], 'in a browser', () => {
  let browser: Browser
  let pages: VisitorPages

  beforeAll(async () => {
    pages = await visitorPages({ name: 'Acme <IT>', contact: 'it@acme.example', logo: LOGO })
    browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
  })
  afterAll(async () => {
    await browser?.close()
    await pages?.[Symbol.asyncDispose]()
  })

  async function window(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await (await browser.newContext(options)).newPage()
    page.setDefaultTimeout(20_000)
    return page
  }

  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1440, 1024, 390])
      test(`${colorScheme}, ${width} pixels: nothing for axe, nothing wider than the screen, nothing that the policy stops`, async () => {
        const axe = await Bun.file(join(root, 'node_modules/axe-core/axe.min.js')).text()
        const found: string[] = []
        const page = await window({ colorScheme, viewport: { width, height: 800 } })
        page.on('console', message => {
          if (message.text().includes('Content Security Policy')) found.push(message.text())
        })
        for (const [title, url, act] of pages.pages) {
          // One of these is one visit too many.
          if (url === pages.at('rated')) await fetch(url)
          await page.goto(url)
          await act?.(page)
          expect(await page.title()).toBe(title)
          expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(title)
          // Of the operator: in words, as a picture that was drawn, and as a link.
          await page.getByText('Acme <IT>').first().waitFor()
          expect(
            Number(await page.evaluate('document.querySelector(".brand img").naturalWidth')),
          ).toBeGreaterThan(0)
          expect(await page.getByRole('link', { name: 'it@acme.example' }).getAttribute('href')).toBe(
            'mailto:it@acme.example',
          )
          const [light, dark] = ['rgb(245, 248, 248)', 'rgb(11, 15, 17)']
          expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(
            colorScheme === 'light' ? light : dark,
          )
          if (Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth')) > 0)
            found.push(`${title}: wider than the screen`)
          await page.evaluate(axe)
          for (const id of await page.evaluate<string[]>(AXE)) found.push(`${title}: ${id}`)
        }
        await page.context().close()
        expect(found).toEqual([])
      })

  test('a page that says how long to wait counts, and opens the app by itself', async () => {
    const page = await window()
    await page.goto(pages.at('brief'))
    expect(await page.title()).toBe('app')
    await page.reload()
    expect(await page.title()).toBe('Too many requests')
    expect(await page.locator('.again').textContent()).toMatch(/^You can try again in \d s\.$/)
    await page.getByText('It works').waitFor()
    await page.context().close()
  })

  test('the page of the server copies its commands', async () => {
    const page = await window({ permissions: ['clipboard-read', 'clipboard-write'] })
    await page.goto(pages.at(''))
    await page.getByRole('button', { name: 'Copy' }).first().click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(
      /^localtunnels login localhost:\d+$/,
    )
    await page.context().close()
  })

  test('an app that starts is opened by itself', async () => {
    const page = await window()
    await page.goto(pages.at('later'))
    expect(await page.title()).toBe('No tunnel is open at this address')
    const tunnel = await pages.client.http({ fetch: app, subdomain: 'later' })
    await page.getByText('It works').waitFor()
    await tunnel.close()
    await page.context().close()
  })

  test('without scripts the pages say the same, and the password works', async () => {
    const page = await window({ javaScriptEnabled: false })
    await page.goto(pages.at('locked'))
    await page.getByLabel('Password').fill('correct horse')
    await page.getByRole('button').click()
    expect(await page.title()).toBe('app')
    await page.context().close()
  })

  test('a visitor reads nothing of the inside', async () => {
    const page = await window()
    for (const [title, url] of pages.pages.slice(0, 5)) {
      await page.goto(url)
      if ((await page.title()) !== title) await page.reload()
      const text = (await page.locator('main').textContent()) ?? ''
      expect(text).not.toMatch(/127\.0\.0\.1|stack|Error:|undefined|NaN/)
      expect(text.split('Is it yours?')[0]).not.toMatch(/client|origin|carrier|max[A-Z]|--\w/)
    }
    await page.context().close()
  })
})

test('branding that cannot be shown is refused, with what to change', () => {
  const refused = (branding: NonNullable<ConstructorParameters<typeof TunnelServer>[0]>['branding']) => {
    try {
      new TunnelServer({ branding: branding! })
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }
  expect(refused({ name: 'A', contact: 'https://help.example', logo: LOGO })).toBeUndefined()
  expect(refused({ logo: `<?xml version="1.0"?>\n<!-- drawn -->\n${LOGO}` })).toBeUndefined()
  expect(refused({ logo: 'data:image/png;base64,iVBORw0KGgo=' })).toBeUndefined()
  expect(refused({ name: ' ' })).toMatch(/^branding\.name must have 1 to 80 characters/)
  for (const contact of ['javascript:alert(1)', 'http://help.example', 'it', 'a b@c'])
    expect(refused({ contact })).toMatch(/^branding\.contact ".*" is no email address/)
  for (const logo of ['<html>', 'data:text/html,<b>', 'data:image/png;base64,"><b>', ''])
    expect(refused({ logo })).toMatch(/^branding\.logo is neither/)
  for (const inner of [
    '<script>1</script>',
    '<a href="https://a.example"/>',
    '<image xlink:href="//a"/>',
    '<path style="fill:url(https://a)"/>',
    '<path onload="a()"/>',
  ])
    expect(refused({ logo: LOGO.replace('<path', `${inner}<path`) })).toMatch(/without scripts/)
  expect(refused({ logo: `${LOGO}${' '.repeat(65_536)}` })).toMatch(/at most 64 KiB/)
})
