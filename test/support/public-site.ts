// A public side as a team has it: https, and a domain that no dev server knows. Dev servers accept every name below localhost.

import { get } from 'node:https'
import type { TunnelServer } from '../../src/server/server.ts'
import { Browser } from './browser.ts'
import { makeCertificate } from './certificates.ts'
import { startServer } from './tunnel.ts'

const DOMAIN = 'tunnel.test'

export interface PublicSite extends AsyncDisposable {
  readonly server: TunnelServer
  /** What clients dial. Its certificate is one of no authority: `verifyServer: false`. */
  readonly dialled: string
  /** What visitors of the tunnel `app` open. */
  readonly url: string
  readonly host: string
  /** The status that a visitor gets, and the code, if it is an error of ours. */
  visit(): Promise<{ readonly status: number; readonly code: string | undefined }>
}

export async function startPublicSite(): Promise<PublicSite> {
  const tls = await makeCertificate([DOMAIN, `*.${DOMAIN}`])
  const server = await startServer({ domains: [DOMAIN], tls })
  const host = `app.${DOMAIN}`
  return {
    server,
    dialled: `https://127.0.0.1:${server.port}`,
    url: `https://${host}:${server.port}`,
    host,
    visit: () => visit(host, server.port),
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

function visit(host: string, port: number): ReturnType<PublicSite['visit']> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, servername: host, rejectUnauthorized: false, agent: false }
    const asking = get({ ...options, headers: { host: `${host}:${port}`, accept: 'text/html' } }, answer => {
      const named = answer.headers['x-localtunnels-error']
      resolve({ status: answer.statusCode ?? 0, code: typeof named === 'string' ? named : undefined })
      answer.resume()
    })
    asking.on('error', reject)
  })
}

/** A browser that reaches the public side alone, as one of another machine: no port of a dev server is there for it. */
export function startVisitor({ host, server: { port } }: PublicSite): Promise<Browser> {
  const rules = [`MAP ${host}:${port} 127.0.0.1:${port}`, 'MAP * ~NOTFOUND']
  return Browser.start(['--ignore-certificate-errors', `--host-resolver-rules=${rules.join(', ')}`])
}
