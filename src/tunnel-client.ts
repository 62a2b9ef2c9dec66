// The client with all of its parts: the one place that knows them. Their order is that in which bytes for an app pass them.

import { TunnelClient as Client } from './client/client.ts'
import type { Install } from './client/contracts/part.ts'
import type { TunnelClientOptions } from './client/options.ts'
import { installHttp2 } from './parts/http2/client/install.ts'
import { installInspector } from './parts/inspect/install.ts'
import { installJsonWire } from './parts/json-wire/client/install.ts'
import { installLanes } from './parts/lanes/client/install.ts'
import { installWebhooks } from './parts/webhooks/install.ts'

/**
 * The parts of a client: first the one that watches, then the one that refuses, then the others. Their type is none of the
 * package's.
 */
export const CLIENT_PARTS: readonly object[] = [
  installInspector,
  installWebhooks,
  installJsonWire,
  installHttp2,
  installLanes,
] satisfies readonly Install[]

/**
 * A tunnel client. With `port`, `url`, `unix`, `fetch` or `folder` it has an HTTP tunnel, and `connect()` resolves once
 * its URL is registered; `http()`, `tcp()`, `udp()` add tunnels, on the same connection. A lost connection is made again without limit
 * (unless `reconnect` is false) and names and ports stay. It never throws outside of its own methods and never exits the
 * process; what goes wrong arrives as an `error` event with a stable `code`.
 *
 * Throws `OPTION_INVALID` or `NAME_INVALID` for options that cannot be used.
 */
export class TunnelClient extends Client {
  constructor(options: TunnelClientOptions) {
    super(options, CLIENT_PARTS)
  }
}

/**
 * Starts a client and resolves once its URL is registered: `const { url } = await connectTunnel(3000)`, or with options. A number is a
 * port of this machine.
 */
export async function connectTunnel(options: number | TunnelClientOptions): Promise<TunnelClient> {
  const client = new TunnelClient(typeof options === 'number' ? { port: options } : options)
  await client.connect()
  return client
}
