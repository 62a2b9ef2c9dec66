// An OpenID Connect provider on this machine, of the package oidc-provider, and a browser that signs in there.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

export interface OpenId extends AsyncDisposable {
  readonly issuer: string
  /** Follows the provider from where the server sent the browser to, as this account. Returns where it is sent back to. */
  signIn(location: string, account: string): Promise<URL>
}

/**
 * Accounts are e-mail addresses, or `subject=address`; those that begin with `unverified` were not verified, of those that begin with
 * `silent` nothing is said. `settings`: other than the provider's defaults.
 */
export async function startOpenId(redirectUri: string, settings: object = {}): Promise<OpenId> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [{ client_id: 'server', client_secret: 'server-secret', redirect_uris: [redirectUri] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    ...settings,
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        email: id.replace(/^[^@]*=/, ''),
        ...(!id.startsWith('silent') && { email_verified: !id.startsWith('unverified') }),
      }),
    }),
    cookies: { keys: ['a-key-of-this-test'] },
  })
  server.on('request', provider.callback())
  return {
    issuer,
    signIn: (location, account) => signIn(location, account, issuer),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

async function signIn(location: string, account: string, issuer: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let next = new URL(location)
  let form: URLSearchParams | undefined
  for (let step = 0; step < 12 && next.href.startsWith(issuer); step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(next, {
      redirect: 'manual',
      headers: { cookie },
      ...(form && { method: 'POST', body: form }),
    })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    form = undefined
    const to = answer.headers.get('location')
    if (to !== null) {
      next = new URL(to, next)
      continue
    }
    const page = await answer.text()
    const [, action] = /<form[^>]* action="([^"]+)"/.exec(page) ?? []
    if (action === undefined)
      throw new Error(`the provider shows no form: ${answer.status} ${page.slice(0, 500)}`)
    const [, prompt = 'login'] = /name="prompt" value="([^"]+)"/.exec(page) ?? []
    next = new URL(action, next)
    form = new URLSearchParams({ prompt, login: account, password: 'any' })
  }
  return next
}
