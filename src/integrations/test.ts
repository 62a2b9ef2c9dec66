// `localtunnels/test`: a URL for what a test starts, and what came to it. Works without a network, in bun test, vitest and Playwright.
//
//   import { tunnel } from 'localtunnels/test'
//   await using site = await tunnel(app.fetch)
//   await payAt(site.url)
//   expect((await site.waitFor('POST /hooks')).request?.json()).toMatchObject({ type: 'paid' })
/// <reference lib="esnext.disposable" preserve="true" />

import type { Exchange, WaitOptions } from '../client/contracts/watching.ts'
import type { FetchHandler, TunnelClientOptions } from '../client/options.ts'
import { TunnelClient } from '../tunnel-client.ts'
import { startLocalServer } from './local-server.ts'

export { type DeliverOptions, deliver } from './deliver.ts'

/**
 * The time in milliseconds for a wait, below the 5 s that bun test and vitest give a test, so that its failure lists
 * the requests that came.
 */
const WAIT_MS = 4_000
/** The settings of the inspector for tests, which need every request. */
const EVERY_REQUEST = { rate: 0, port: false } as const

/** The options of `TunnelClient`. Without `server`, one is started on this machine, for this tunnel alone. */
export type TestTunnelOptions = TunnelClientOptions

export interface TestTunnel extends AsyncDisposable {
  /** The URL: `http://127.0.0.1:40123` of the server on this machine, otherwise that of the named server. */
  readonly url: string
  /** The client, with its events and all its other methods. */
  readonly client: TunnelClient
  /** The exchanges, each after its end. The loop ends with the tunnel. */
  readonly exchanges: AsyncIterable<Exchange>
  /** As `waitFor` of `TunnelClient`, with a `timeout` of 4,000 ms by default: less than test runners give a test. */
  waitFor(filter: string, options?: WaitOptions): Promise<Exchange>
  /** Ends the tunnel at once. Open requests are cut. */
  close(): Promise<void>
}

/**
 * Gives a URL to a function that responds to requests, a port, or the app of the options, and captures all requests.
 * Rejects with the errors of `TunnelClient.connect`. The server on this machine needs Bun, even for tests on Node;
 * without it, `RUNTIME_UNSUPPORTED`.
 */
export async function tunnel(
  app: FetchHandler | number | TestTunnelOptions,
  more: TestTunnelOptions = {},
): Promise<TestTunnel> {
  const options: TestTunnelOptions = { inspect: EVERY_REQUEST, ...more, ...originOf(app) }
  const own = options.server === undefined ? await startLocalServer() : undefined
  const client = new TunnelClient({ ...options, ...own?.options })
  const close = async () => {
    await client.disconnect()
    await own?.stop()
  }
  try {
    await client.connect()
  } catch (error) {
    await close()
    throw error
  }
  return {
    get url() {
      return client.url
    },
    client,
    get exchanges() {
      return client.exchanges
    },
    waitFor: (filter, wait) => client.waitFor(filter, { timeout: WAIT_MS, ...wait }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function originOf(app: FetchHandler | number | TestTunnelOptions): TestTunnelOptions {
  if (typeof app === 'number') return { port: app }
  return typeof app === 'function' ? { fetch: app } : app
}
