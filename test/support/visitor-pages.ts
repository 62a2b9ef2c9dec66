// A server that shows each of its pages to visitors: the app is down, the password is asked for, the link has ended, …

import type { Page } from 'playwright-core'
import { guarding, TunnelClient, TunnelServer, type TunnelServerOptions } from '../../src/index.ts'

const TOKEN = 'a-token-for-the-clients'

/** A page by its title: where it is, and what a visitor does there. */
export type VisitorPage = readonly [title: string, url: string, act?: (page: Page) => Promise<unknown>]

export interface VisitorPages extends AsyncDisposable {
  readonly client: TunnelClient
  readonly pages: readonly VisitorPage[]
  /** An address of a tunnel; without a name, of the server itself. */
  at(name: string, path?: string): string
}

export const app = (): Response =>
  new Response('<title>app</title>It works', { headers: { 'content-type': 'text/html' } })

export async function visitorPages(branding: TunnelServerOptions['branding']): Promise<VisitorPages> {
  const logins = [{ issuer: 'https://login.acme.example', clientId: 'server', clientSecret: 'secret' }]
  const server = new TunnelServer({
    port: 0,
    host: '127.0.0.1',
    tokens: [TOKEN],
    guarding: guarding({ logins }),
    ...(branding && { branding }),
    limits: { startupHoldMs: 0 },
  })
  await server.start()
  const client = new TunnelClient({ server: server.url, token: TOKEN })
  client.on('error', () => {})
  const fetch = app
  const password = 'correct horse'
  await client.http({ port: 1, subdomain: 'down' })
  await client.http({ fetch, subdomain: 'locked', guard: { password } })
  const login = { issuer: 'https://login.acme.example', emails: ['*@acme.example'] }
  await client.http({ fetch, subdomain: 'both', guard: { password, login } })
  await client.http({ fetch, subdomain: 'rated', guard: { rate: { limit: 1, windowMs: 30_000 } } })
  await client.http({ fetch, subdomain: 'brief', guard: { rate: { limit: 1, windowMs: 2_000 } } })
  await client.http({ fetch, subdomain: 'walled', guard: { allow: ['203.0.113.0/24'] } })
  const links = await client.http({ fetch, subdomain: 'links', guard: { links: true } })
  const invitation = links.link({ once: true }).url
  const at = (name: string, path = '/') =>
    `http://${name === '' ? '' : `${name}.`}localhost:${server.port}${path}`
  const guess = async (page: Page) => {
    await page.getByLabel('Password').fill('wrong horse')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
  }
  return {
    client,
    at,
    pages: [
      ['The app is not running', at('down')],
      ['No tunnel is open at this address', at('nothing')],
      ['Too many requests', at('rated')],
      ['You cannot visit this app from here', at('walled')],
      ['This link does not work any more', at('links', '/.localtunnels/link/none')],
      ['You are invited', invitation],
      ['Password needed', at('locked'), guess],
      ['Sign in', at('both')],
      ['Sign out?', at('locked', '/.localtunnels/logout')],
      ['This server gives apps a public address', at('')],
    ],
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}
