// A public side as a team has it: https, and a domain that no dev server knows. Dev servers accept every name below localhost.

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
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

/** A browser for which the domain leads to this machine. */
export function startVisitor(): Promise<Browser> {
  return Browser.start(['--ignore-certificate-errors', `--host-resolver-rules=MAP *.${DOMAIN} 127.0.0.1`])
}
