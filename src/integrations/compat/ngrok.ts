// `forward` of `@ngrok/ngrok` and related functions, on our tunnels.

import { deferred } from '../../deferred.ts'
import { TunnelError } from '../../errors.ts'
import { TunnelClient } from '../../tunnel-client.ts'
import { DEFAULT_ADDR, type ForwardOptions, placeOf, type Wanted, wantedOf } from './ngrok-options.ts'

/** A listener with the interface of `@ngrok/ngrok`. */
export interface Listener {
  /** Returns the URL for visitors. */
  url(): string
  /** Returns the name of the tunnel. */
  id(): string
  /** Returns `http`, `tcp` or `tls`. */
  proto(): string
  metadata(): string
  forwardsTo(): string
  /** Sets the place of the app, with HTTP. Resolves when the listener is closed. */
  forward(addr: number | string): Promise<void>
  /** Resolves when it is closed. */
  join(): Promise<void>
  close(): Promise<void>
}

const open = new Map<string, Listener>()
let defaultToken: string | undefined

/** Sets the token of later listeners, in place of `TUNNEL_TOKEN`. */
export async function authtoken(token: string): Promise<void> {
  defaultToken = token
}

/** Forwards to an app: `const listener = await forward({ addr: 8080 })`. Rejects with the errors of `TunnelClient.connect`. */
export async function forward(where: number | string | ForwardOptions = {}): Promise<Listener> {
  const options: ForwardOptions = typeof where === 'object' ? where : { addr: where }
  return await listen(wantedOf(options, defaultToken), options)
}

/** Returns all open listeners, in no order. */
export async function listeners(): Promise<Listener[]> {
  return [...open.values()]
}

export async function getListener(id: string): Promise<Listener | null> {
  return [...open.values()].find(one => one.id() === id) ?? null
}

export async function getListenerByUrl(url: string): Promise<Listener | null> {
  return [...open.values()].find(one => one.url() === url) ?? null
}

/** Closes the listener with this URL or id, or all. */
export async function disconnect(which?: string | null): Promise<void> {
  const ending = [...open.values()].filter(one => !which || one.url() === which || one.id() === which)
  await Promise.all(ending.map(one => one.close()))
}

/** Closes all listeners. */
export const kill = (): Promise<void> => disconnect()

/** Makes a listener of this kind. `later`: `forward` names its app. */
export async function listen(wanted: Wanted, options: ForwardOptions, later = false): Promise<Listener> {
  const client = new TunnelClient(later ? withoutApp(wanted.client) : wanted.client)
  const over = deferred<void>()
  client.once('close', () => over.resolve())
  tellStatus(client, options)
  const tunnel = await opened(client, wanted).catch((error: unknown) => {
    throw namingVariable(error, options)
  })
  const id = tunnel.name
  const key = `${wanted.kind} ${id}`
  let target = options.forwards_to ?? String(options.addr ?? DEFAULT_ADDR)
  const listener: Listener = {
    url: () => tunnel.url,
    id: () => id,
    proto: () => wanted.kind,
    metadata: () => options.metadata ?? '',
    forwardsTo: () => target,
    async forward(addr) {
      client.forward(placeOf(addr))
      target = String(addr)
      await over.promise
    },
    join: () => over.promise,
    async close() {
      open.delete(key)
      await client.disconnect()
    },
  }
  open.set(key, listener)
  void over.promise.then(() => open.delete(key))
  return listener
}

/** Explains an error: programs for ngrok have their token in NGROK_AUTHTOKEN, which is a token of that service. */
function namingVariable(error: unknown, { authtoken_from_env }: ForwardOptions): unknown {
  const isWithout = authtoken_from_env === true && !process.env.TUNNEL_TOKEN
  if (!(error instanceof TunnelError && error.code === 'TOKEN_REFUSED' && isWithout)) return error
  const text = 'authtoken_from_env reads TUNNEL_TOKEN here, which is not set.'
  return new TunnelError('TOKEN_REFUSED', text, { cause: error })
}

function withoutApp({ url: _url, unix: _unix, ...options }: Wanted['client']): Wanted['client'] {
  return { ...options, later: true }
}

async function opened(
  client: TunnelClient,
  wanted: Wanted,
): Promise<{ readonly url: string; readonly name: string }> {
  if (wanted.kind === 'tcp') return await client.tcp(wanted.tunnel)
  if (wanted.kind === 'tls') return await client.tls(wanted.tunnel)
  await client.connect()
  return {
    get url() {
      return client.getTunnelUrl()
    },
    name: client.getSubdomain(),
  }
}

function tellStatus(
  client: TunnelClient,
  { onStatusChange, on_status_change, addr = DEFAULT_ADDR }: ForwardOptions,
): void {
  if (onStatusChange === undefined && on_status_change === undefined) return
  client.on('connected', () => onStatusChange?.('connected'))
  client.on('disconnected', ({ error }) => {
    onStatusChange?.('closed')
    on_status_change?.(String(addr), error?.message ?? '')
  })
}
