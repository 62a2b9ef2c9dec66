// Guards as people meet them: in Chromium, with its cookies, its policies and its own idea of what may be sent where.
// Up to 7 s on a busy machine: a browser, a provider and their pages.

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { guarding, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { Browser } from '../support/browser.ts'
import { describeWith } from '../support/needs.ts'
import { type OpenId, startOpenId } from '../support/openid.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

const PASSWORD = 'correct horse'
const LONG_ISSUER = `https://${'login'.repeat(12)}.example`

describeWith(['chromium'], 'in a browser', () => {
  let browser: Browser
  let openId: OpenId
  let server: TunnelServer
  let client: TunnelClient
  let base = ''

  beforeAll(async () => {
    const port = freePort()
    base = `http://shop.localhost:${port}`
    openId = await startOpenId(`${base}/.localtunnels/callback`)
    const logins = [openId.issuer, LONG_ISSUER].map(issuer => ({
      issuer,
      clientId: 'server',
      clientSecret: 'server-secret',
    }))
    server = await startServer({ port, guarding: guarding({ logins }) })
    client = new TunnelClient({ server: `http://127.0.0.1:${port}` })
    browser = await Browser.start()
  })
  afterAll(async () => {
    await browser[Symbol.asyncDispose]()
    await client.disconnect()
    await server.stop()
    await openId[Symbol.asyncDispose]()
  })
  afterEach(async () => {
    for (const tunnel of client.tunnels) await tunnel.close()
    await browser.forget()
  })

  /** A page that says its cookies, and who visits it. */
  const app = (request: Request) =>
    new Response(
      `<title>app</title><p>${new URL(request.url).pathname} ${request.headers.get('cookie')} ${request.headers.get('x-localtunnels-user')}</p>`,
      { headers: { 'content-type': 'text/html' } },
    )
  const title = () => browser.run('document.title')
  const text = () => browser.run('document.body.innerText')

  /** Signs in at the provider, and lets it tell the server. */
  const signInAs = async (account: string) => {
    await browser.follow(
      `document.querySelector('[name=login]').value='${account}';document.querySelector('[name=password]').value='any';document.forms[0].requestSubmit()`,
    )
    await browser.follow('document.forms[0].requestSubmit()')
  }

  test('the password page, a wrong one, the right one, and signing out', async () => {
    await client.http({ fetch: app, subdomain: 'shop', guard: { password: PASSWORD } })
    await browser.open(`${base}/start?a=1`)
    expect(await title()).toBe('Password needed')
    const send = (password: string) =>
      browser.follow(`document.querySelector('#p').value='${password}';document.forms[0].requestSubmit()`)
    await send('wrong horse')
    expect(await text()).toContain('That is not the password')
    await send(PASSWORD)
    expect([await title(), await browser.run('location.href')]).toEqual(['app', `${base}/start?a=1`])
    expect(await text()).toBe('/start null null')
    // What scripts of the page fetch has the session, and none of them can read its cookie.
    expect(await browser.run("fetch('/other').then(answer => answer.status)")).toBe('200')
    expect(await browser.run('document.cookie')).toBe('')
    await browser.open(`${base}/.localtunnels/logout`)
    await browser.follow('document.forms[0].requestSubmit()')
    expect(await text()).toContain('signed out')
    // No window for a user name and password: the script gets its 401.
    expect(await browser.run("fetch('/start').then(answer => answer.status)")).toBe('401')
    await browser.open(`${base}/start`)
    expect(await title()).toBe('Password needed')
  }, 60_000)

  test('a link that works once is spent by its button', async () => {
    const tunnel = await client.http({ fetch: app, subdomain: 'shop', guard: { links: true } })
    const { url } = tunnel.link({ path: '/preview', once: true })
    await browser.open(url)
    expect(await title()).toBe('You are invited')
    await browser.follow('document.forms[0].requestSubmit()')
    expect(await browser.run('location.pathname')).toBe('/preview')
    await browser.open(url)
    expect(await text()).toContain('LINK_REFUSED')
  }, 60_000)

  test('a login at an OpenID Connect provider', async () => {
    await client.http({
      fetch: app,
      subdomain: 'shop',
      guard: { login: { issuer: openId.issuer, emails: ['*@example.com'] } },
    })
    await browser.open(`${base}/page`)
    expect(await browser.run('location.origin')).toBe(openId.issuer)
    await signInAs('anna@example.com')
    expect(await browser.run('location.href')).toBe(`${base}/page`)
    expect(await text()).toBe('/page null anna@example.com')
  }, 60_000)

  const both = () =>
    client.http({
      fetch: app,
      subdomain: 'shop',
      guard: { password: PASSWORD, login: { issuer: openId.issuer, emails: ['*@example.com'] } },
    })

  test('of a password and a login a person chooses the login', async () => {
    await both()
    await browser.open(`${base}/start?a=1`)
    expect(await title()).toBe('Sign in')
    // Its policy lets no script run: the link is one of HTML.
    expect(await browser.run("document.querySelector('script') === null")).toBe('true')
    await browser.follow("document.querySelector('a').click()")
    expect(await browser.run('location.origin')).toBe(openId.issuer)
    await signInAs('anna@example.com')
    expect(await browser.run('location.href')).toBe(`${base}/start?a=1`)
    expect(await text()).toBe('/start null anna@example.com')
  }, 60_000)

  test('a person whose account is refused signs in with another one, although the provider still knows the first', async () => {
    const login = { issuer: openId.issuer, emails: ['*@example.com'] }
    await client.http({ fetch: app, subdomain: 'shop', guard: { login } })
    await browser.open(`${base}/start`)
    await signInAs('eve@evil.example')
    expect(await title()).toBe('Not signed in')
    await browser.follow("document.querySelector('a').click()")
    await signInAs('anna@example.com')
    expect(await text()).toBe('/start null anna@example.com')
  }, 60_000)

  test('of a password and a login a person chooses the password', async () => {
    await both()
    await browser.open(`${base}/start?a=1`)
    // The field has the focus from the first picture of the page on, which may come after its load.
    const focused =
      'new Promise(found => { const look = () => document.activeElement.name ? found(document.activeElement.name) : requestAnimationFrame(look); look() })'
    expect(await browser.run(focused)).toBe('password')
    await browser.follow(`document.activeElement.value='${PASSWORD}';document.forms[0].requestSubmit()`)
    expect(await browser.run('location.href')).toBe(`${base}/start?a=1`)
    expect(await text()).toBe('/start null null')
  }, 60_000)

  test('the forms lead into an app that sends its visitors on to another site', async () => {
    using elsewhere = Bun.serve({
      port: 0,
      fetch: () => new Response('<title>elsewhere</title>', { headers: { 'content-type': 'text/html' } }),
    })
    const away = `http://127.0.0.1:${elsewhere.port}/`
    const tunnel = await client.http({
      fetch: request => (request.url.endsWith('/away') ? Response.redirect(away) : app(request)),
      subdomain: 'shop',
      guard: { password: PASSWORD, links: true },
    })
    await browser.open(`${base}/away`)
    await browser.follow(`document.querySelector('#p').value='${PASSWORD}';document.forms[0].requestSubmit()`)
    expect(await browser.run('location.href')).toBe(away)
    await browser.open(tunnel.link({ path: '/away', once: true }).url)
    await browser.follow('document.forms[0].requestSubmit()')
    expect(await browser.run('location.href')).toBe(away)
  }, 60_000)

  test('the page with both fits a phone of 320 pixels, and what is on it has names', async () => {
    await client.http({
      fetch: app,
      subdomain: 'shop',
      guard: { password: PASSWORD, login: { issuer: LONG_ISSUER } },
    })
    await browser.narrow(320)
    await browser.open(`${base}/`)
    expect(await browser.run('document.documentElement.scrollWidth')).toBe('320')
    expect(await browser.names()).toEqual([
      'button Open',
      'heading Sign in',
      `link Sign in with ${new URL(LONG_ISSUER).host}`,
      'textbox Password',
    ])
  }, 60_000)
})
