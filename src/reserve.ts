// A public URL before there is an app: for programs that start one, and have to tell it where it is visited.
/// <reference lib="esnext.disposable" preserve="true" />

import type { OriginOptions, TunnelClientOptions } from './client/options.ts'
import { TunnelClient } from './tunnel-client.ts'

/** The options of `TunnelClient`, without those for the place of the app. */
export type ReserveOptions = Omit<
  TunnelClientOptions,
  'port' | 'host' | 'url' | 'unix' | 'fetch' | 'folder' | 'spa' | 'later'
>

/** A name that is reserved for an app. */
export interface Reservation extends AsyncDisposable {
  /** The URL at which visitors will find the app: `https://app.tunnel.example`. */
  readonly url: string
  /** The host of the URL, which dev servers must accept. */
  readonly host: string
  /** The client that has the name, with its events and all its other methods. */
  readonly client: TunnelClient
  /**
   * Sets the place of the app: a port of this machine, or the options of an app. A further call moves it. Throws
   * `OPTION_INVALID`.
   */
  connect(where: number | OriginOptions): void
  /** Releases the name, once open requests have ended. */
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
