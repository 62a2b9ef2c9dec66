// `localtunnels/compat`: the functions of two other packages, over a tunnel of ours. A program changes its import, and names a server.

import { EventEmitter } from 'node:events'
import { TunnelClient } from '../client/client.ts'
import type { OriginOptions, TunnelClientOptions } from '../client/options.ts'
import { TunnelError } from '../errors.ts'

/** What the `localtunnel` package takes. */
export interface LocaltunnelOptions {
  readonly port?: number
  /** The server: here `https://tunnel.example`. Default `TUNNEL_SERVER`. */
  readonly host?: string
  readonly subdomain?: string
  /** The app's host, which also replaces the visitor's Host. */
  readonly local_host?: string
  readonly local_https?: boolean
  readonly local_cert?: string
  readonly local_key?: string
  readonly local_ca?: string
  /** `true`: the app's certificate may be any. */
  readonly allow_invalid_cert?: boolean
}

/** A tunnel as `localtunnel` gives it: events `request`, `error` and `close`. */
export class LocaltunnelTunnel extends EventEmitter {
  readonly #client: TunnelClient

  constructor(client: TunnelClient) {
    super()
    this.#client = client
    client.on('request', ({ method, path }) => this.emit('request', { method, path }))
    client.on('error', error => {
      // Without a listener an emitter would end the process.
      if (this.listenerCount('error') > 0) this.emit('error', error)
    })
    client.on('close', () => this.emit('close'))
  }

  get url(): string {
    return this.#client.getTunnelUrl()
  }

  get clientId(): string {
    return this.#client.getSubdomain()
  }

  close(): void {
    void this.#client.disconnect()
  }
}

type Done = (error: Error | null, tunnel?: LocaltunnelTunnel) => void

/** `localtunnel({ port: 3000 })`, `localtunnel(3000)`, with or without a callback. Rejects as `TunnelClient.connect` does. */
export default function localtunnel(
  where: number | LocaltunnelOptions,
  second?: LocaltunnelOptions | Done,
  third?: Done,
): Promise<LocaltunnelTunnel> {
  const given = typeof second === 'object' ? second : {}
  const options = typeof where === 'number' ? { ...given, port: where } : where
  const done = typeof second === 'function' ? second : third
  const opening = open(options)
  if (done !== undefined)
    opening.then(
      tunnel => done(null, tunnel),
      (error: Error) => done(error),
    )
  return opening
}

async function open(options: LocaltunnelOptions): Promise<LocaltunnelTunnel> {
  const { port, host, subdomain, local_host, local_https, allow_invalid_cert } = options
  const name = local_host ?? 'localhost'
  const app: OriginOptions = local_https
    ? { url: `https://${name}:${port}`, ...(allow_invalid_cert && { verifyOrigin: false }) }
    : { ...(port !== undefined && { port }), host: name }
  return new LocaltunnelTunnel(
    await connect({
      ...app,
      ...(host !== undefined && { server: host }),
      ...(subdomain !== undefined && { subdomain }),
      ...(local_host !== undefined && { hostHeader: local_host }),
    }),
  )
}

/** What `forward` of `@ngrok/ngrok` takes, of those that have a meaning here. */
export interface ForwardOptions {
  /** `8080`, `"localhost:8080"`, `"https://localhost:8443"`. */
  readonly addr: number | string
  /** The token of the server. */
  readonly authtoken?: string
  /** `true`: that of `TUNNEL_TOKEN`, which counts anyway. */
  readonly authtoken_from_env?: boolean
  /** The host: `shop.tunnel.example` asks for `shop`. */
  readonly domain?: string
  /** The server. Default `TUNNEL_SERVER`. */
  readonly server_addr?: string
}

/** As `@ngrok/ngrok` gives it. */
export interface Listener {
  url(): string
  id(): string
  close(): Promise<void>
}

/** Options of `forward` that change nothing of who may visit and where they go: they may be given, and are not looked at. */
const HARMLESS = new Set(['forwards_to', 'metadata', 'session_metadata', 'compression', 'force_new_session'])
const TAKEN = new Set(['addr', 'authtoken', 'authtoken_from_env', 'domain', 'server_addr'])

/**
 * An option that protects an app, such as `basic_auth` or `ip_restriction_allow_cidrs`, must not be left out without a word: what it
 * protects would be open. Throws `OPTION_INVALID` for all that are not known to be harmless.
 */
function refuseOthers(options: object): void {
  const others = Object.entries(options)
    .filter(([name, value]) => value !== undefined && !TAKEN.has(name) && !HARMLESS.has(name))
    .filter(([name, value]) => !(name === 'proto' && value === 'http'))
    .map(([name]) => name)
  if (others.length === 0) return
  throw new TunnelError(
    'OPTION_INVALID',
    `forward() does not have ${others.join(', ')}. TunnelClient has guards, routes and tunnels of other kinds.`,
  )
}

const forwarded = new Map<string, TunnelClient>()

/** `const listener = await forward({ addr: 8080 })`. Rejects with `OPTION_INVALID` for options that it does not have. */
export async function forward(where: number | string | ForwardOptions): Promise<Listener> {
  const options: ForwardOptions = typeof where === 'object' ? where : { addr: where }
  refuseOthers(options)
  const { addr, authtoken, domain, server_addr } = options
  const text = String(addr)
  const url = /^https?:\/\//.test(text) ? text : `http://${/^\d+$/.test(text) ? `localhost:${text}` : text}`
  const client = await connect({
    url,
    ...(authtoken !== undefined && { token: authtoken }),
    ...(domain !== undefined && { subdomain: domain.split('.')[0] ?? domain, exact: true }),
    ...(server_addr !== undefined && { server: server_addr }),
  })
  const id = client.getSubdomain()
  forwarded.set(client.getTunnelUrl(), client)
  return {
    url: () => client.getTunnelUrl(),
    id: () => id,
    close: () => client.disconnect(),
  }
}

/** Ends the tunnel with this URL, or all that `forward` made. */
export async function disconnect(url?: string): Promise<void> {
  const ending = [...forwarded].filter(([one]) => url === undefined || one === url)
  for (const [one] of ending) forwarded.delete(one)
  await Promise.all(ending.map(([, client]) => client.disconnect()))
}

async function connect(options: TunnelClientOptions): Promise<TunnelClient> {
  const client = new TunnelClient(options)
  await client.connect()
  return client
}
