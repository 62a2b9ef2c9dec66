// The inspector's page in Chromium, in front of a client with an app of the test's own.

import { resolve } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import type { HttpTunnelOptions, InspectOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { ask } from './ask.ts'
import { startServer } from './tunnel.ts'

const AXE = resolve(import.meta.dir, '../../node_modules/axe-core/axe.min.js')

export interface Look {
  readonly colorScheme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
}

export class InspectorPage implements AsyncDisposable {
  readonly server: TunnelServer
  readonly client: TunnelClient
  readonly browser: Browser
  readonly context: BrowserContext
  readonly #errors: Error[] = []
  #page: Page | undefined

  private constructor(server: TunnelServer, client: TunnelClient, browser: Browser, context: BrowserContext) {
    this.server = server
    this.client = client
    this.browser = browser
    this.context = context
  }

  static async open(
    app: ((request: Request) => Response | Promise<Response>) | undefined,
    inspect: InspectOptions = {},
    tunnel: Partial<HttpTunnelOptions> = {},
  ): Promise<InspectorPage> {
    const executablePath = Bun.which('chromium') ?? ''
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    const server = await startServer()
    const client = new TunnelClient({
      server: server.url,
      subdomain: 'shop',
      inspect: { rate: 0, ...inspect },
      ...(app && { fetch: app }),
      ...tunnel,
    })
    await client.connect()
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const own = new InspectorPage(server, client, browser, context)
    own.#page = await own.another()
    return own
  }

  get page(): Page {
    return this.#page!
  }

  /** A tab of its own; with a look, a window of its own. */
  async another(look?: Look): Promise<Page> {
    const context =
      look === undefined
        ? this.context
        : await this.browser.newContext({
            ...(look.colorScheme && { colorScheme: look.colorScheme }),
            // What fades in has no contrast yet.
            reducedMotion: 'reduce',
            viewport: { width: look.width ?? 1440, height: look.height ?? 900 },
          })
    const page = await context.newPage()
    // Below that of the test: what is missing is named then.
    page.setDefaultTimeout(20_000)
    page.on('pageerror', error => this.#errors.push(error))
    await page.goto(this.client.inspectorUrl ?? '')
    await page.locator('.live', { hasText: 'Live' }).waitFor()
    return page
  }

  visit(path: string, options: Parameters<typeof ask>[2] = {}): ReturnType<typeof ask> {
    return ask(this.server.port, 'shop.localhost', { path, ...options })
  }

  json(path: string, body: string): ReturnType<typeof ask> {
    return this.visit(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  }

  row(text: string, page: Page = this.page): ReturnType<Page['locator']> {
    return page.locator('.rows .row', { hasText: text }).first()
  }

  /** The newest request with this path, chosen; the list shows all that came. */
  async choose(path: string, page: Page = this.page): Promise<void> {
    await this.all(page)
    await this.row(path, page).click()
    await page.locator('.detail h2', { hasText: path }).waitFor()
  }

  /** Those that wait come into the list. */
  async all(page: Page = this.page): Promise<void> {
    await page.mouse.move(700, 20)
    await page.evaluate('document.activeElement.blur()')
    // A mode, and then the request; never the filter.
    for (let step = 0; step < 3 && (await page.locator('main.has-detail').count()) > 0; step++)
      await page.keyboard.press('Escape')
  }

  says(text: string): Promise<void> {
    return this.page.locator('.toast', { hasText: text }).waitFor()
  }

  /** What axe finds, and whether the page is wider than the screen. */
  async faults(page: Page): Promise<unknown[]> {
    await page.evaluate(await Bun.file(AXE).text())
    const found = await page.evaluate<unknown[]>(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
    )
    const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
    return isWide ? [...found, 'wider than the screen'] : found
  }

  /** Throws what a script of the page threw. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close()
    await this.client.disconnect()
    await this.server.stop()
    if (this.#errors[0] !== undefined) throw this.#errors[0]
  }
}
