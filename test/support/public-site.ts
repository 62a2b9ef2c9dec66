// A public side as a team has it: https, and a domain that no dev server knows. Dev servers accept every name below localhost.

import { get } from 'node:https'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { Browser } from './browser.ts'
import { makeCertificate } from './certificates.ts'
import { startServer } from './tunnel.ts'

const DOMAIN = 'tunnel.test'

/** What a test has of it: a name that no other one had. */
export interface PublicSite {
  /** What clients dial. Its certificate is one of no authority: `verifyServer: false`. */
  readonly dialled: string
  readonly name: string
  /** What visitors of the tunnel with this name open. */
  readonly url: string
  readonly host: string
  /** The status that a visitor gets, and the code, if it is an error of ours. */
  visit(): Promise<{ readonly status: number; readonly code: string | undefined }>
  /** A browser that was never there. */
  visitor(): Promise<Browser>
}

/** For all tests of a file: one server. Each visitor is a Chromium of its own: one for all stopped answering in one run of four. */
export class PublicSide implements AsyncDisposable {
  readonly #server: TunnelServer
  #count = 0

  private constructor(server: TunnelServer) {
    this.#server = server
  }

  static async start(): Promise<PublicSide> {
    const tls = await makeCertificate([DOMAIN, `*.${DOMAIN}`])
    return new PublicSide(await startServer({ domains: [DOMAIN], tls }))
  }

  site(): PublicSite {
    const { port } = this.#server
    const name = `app${++this.#count}`
    const host = `${name}.${DOMAIN}`
    return {
      dialled: `https://127.0.0.1:${port}`,
      name,
      url: `https://${host}:${port}`,
      host,
      visit: () => visit(host, port),
      visitor: () => startBrowser(port),
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop()
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

/** It reaches the public side alone, as one of another machine: no port of a dev server is there for it. */
function startBrowser(port: number): Promise<Browser> {
  const rules = [`MAP *.${DOMAIN}:${port} 127.0.0.1:${port}`, 'MAP * ~NOTFOUND']
  return Browser.start(['--ignore-certificate-errors', `--host-resolver-rules=${rules.join(', ')}`])
}
