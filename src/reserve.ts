// A public URL before there is an app: for programs that start one, and have to tell it where it is visited.
/// <reference lib="esnext.disposable" preserve="true" />

import type { OriginOptions, TunnelClientOptions } from './client/options.ts'
import { TunnelClient } from './tunnel-client.ts'

/** All that `TunnelClient` can be notified, without where the app is. */
export type ReserveOptions = Omit<
  TunnelClientOptions,
  'port' | 'host' | 'url' | 'unix' | 'fetch' | 'folder' | 'spa' | 'later'
>

/** A name that is held for an app. */
export interface Reservation extends AsyncDisposable {
  /** The URL at which visitors will find the app: `https://app.tunnel.example`. */
  readonly url: string
  /** The host in it: what dev servers have to accept. */
  readonly host: string
  /** The client that holds the name: its events, and everything else it can do. */
  readonly client: TunnelClient
  /** The app is here: a port of this machine, or what else says where an app is. Again: it has moved. Throws `OPTION_INVALID`. */
  connect(where: number | OriginOptions): void
  /** Gives the name back, once what is in progress is done. */
  close(): Promise<void>
}

/**
 * Reserves a name and resolves with its URL. Until `connect` is called, visitors get 502 `ORIGIN_REFUSED`. Rejects as
 * `TunnelClient.connect` does.
 *
 * ```ts
 * const reserved = await reserve({ server: 'https://tunnel.example' })
 * const app = Bun.spawn(['bun', 'run', 'dev'], { env: { ...process.env, PUBLIC_URL: reserved.url, PORT: '4000' } })
 * reserved.connect(4000)
 * ```
 */
export async function reserve(options: ReserveOptions = {}): Promise<Reservation> {
  const client = new TunnelClient({ ...options, later: true })
  await client.connect()
  return {
    client,
    get url() {
      return client.getTunnelUrl()
    },
    get host() {
      return new URL(client.getTunnelUrl()).hostname
    },
    connect: where => client.forward(where),
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.disconnect(),
  }
}
