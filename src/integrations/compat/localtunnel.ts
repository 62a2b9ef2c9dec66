// The function of the `localtunnel` package, on our tunnels.

import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import type { OriginOptions } from '../../client/options.ts'
import { optionInvalid } from '../../errors.ts'
import { checkNames, type Names, namesOf } from '../../option-names.ts'
import { TunnelClient } from '../../tunnel-client.ts'

/** The options of the `localtunnel` package. */
export interface LocaltunnelOptions {
  readonly port?: number
  /** The server, here `https://tunnel.example`. Default `TUNNEL_SERVER`. */
  readonly host?: string
  readonly subdomain?: string
  /** The app's host, which also replaces the visitor's Host. */
  readonly local_host?: string
  readonly local_https?: boolean
  /** Unsupported: `OPTION_INVALID`, unless `allow_invalid_cert` is `true`. */
  readonly local_cert?: string
  readonly local_key?: string
  /** The file with the authority of the app's certificate. */
  readonly local_ca?: string
  /** Whether to accept any certificate of the app. */
  readonly allow_invalid_cert?: boolean
}

/** A tunnel as `localtunnel` gives it: events `url`, `request`, `error` and `close`. */
export class LocaltunnelTunnel extends EventEmitter {
  #client: TunnelClient | undefined
  #isClosed = false

  /** The URL for visitors. Empty before the tunnel is granted. */
  get url(): string {
    return this.#client?.getTunnelUrl() ?? ''
  }

  get clientId(): string {
    return this.#client?.getSubdomain() ?? ''
  }

  close(): void {
    this.#isClosed = true
    void this.#client?.disconnect()
  }

  /** Opens the tunnel. Only for `localtunnel()`. */
  async open(options: LocaltunnelOptions): Promise<void> {
    const client = new TunnelClient(clientOptions(options))
    client.on('request', ({ method, path }) => this.emit('request', { method, path }))
    client.on('error', error => {
      // An emitter without a listener for `error` would end the process.
      if (this.listenerCount('error') > 0) this.emit('error', error)
    })
    client.on('close', () => this.emit('close'))
    this.#client = client
    await client.connect()
    if (this.#isClosed) await client.disconnect()
    else this.emit('url', this.url)
  }
}

const NAMES: Names<LocaltunnelOptions> = namesOf<LocaltunnelOptions>()(
  'port host subdomain local_host local_https local_cert local_key local_ca allow_invalid_cert',
)

type Done = (error: Error | null, tunnel?: LocaltunnelTunnel) => void

/**
 * Opens a tunnel: `await localtunnel({ port: 3000 })`, `await localtunnel(3000)`. Rejects with the errors of
 * `TunnelClient.connect`. With a callback it returns the tunnel, whose `url` is set when the callback is called.
 */
export function localtunnel(options: LocaltunnelOptions): Promise<LocaltunnelTunnel>
export function localtunnel(port: number, options?: LocaltunnelOptions): Promise<LocaltunnelTunnel>
export function localtunnel(options: LocaltunnelOptions, done: Done): LocaltunnelTunnel
export function localtunnel(port: number, done: Done): LocaltunnelTunnel
export function localtunnel(port: number, options: LocaltunnelOptions, done: Done): LocaltunnelTunnel
export function localtunnel(
  where: number | LocaltunnelOptions,
  second?: LocaltunnelOptions | Done,
  third?: Done,
): Promise<LocaltunnelTunnel> | LocaltunnelTunnel {
  const given = typeof second === 'object' ? second : {}
  const options = typeof where === 'number' ? { ...given, port: where } : where
  const done = typeof second === 'function' ? second : third
  const tunnel = new LocaltunnelTunnel()
  const opening = tunnel.open(options)
  if (done === undefined) return opening.then(() => tunnel)
  opening.then(
    () => done(null, tunnel),
    (error: Error) => done(error),
  )
  return tunnel
}

function clientOptions(options: LocaltunnelOptions): ConstructorParameters<typeof TunnelClient>[0] {
  checkNames(options, NAMES, 'localtunnel()')
  const { port, host, subdomain, local_host, local_https, allow_invalid_cert } = options
  const { local_cert, local_key, local_ca } = options
  if (!allow_invalid_cert && (local_cert ?? local_key) !== undefined)
    throw optionInvalid(
      'local_cert and local_key are not taken: the app gets no certificate of its visitor. Leave them out.',
    )
  const name = local_host ?? 'localhost'
  const app: OriginOptions = local_https
    ? { url: `https://${name}:${port}`, ...tlsOf(allow_invalid_cert, local_ca) }
    : { ...(port !== undefined && { port }), host: name }
  return {
    ...app,
    ...(host !== undefined && { server: host }),
    ...(subdomain !== undefined && { subdomain }),
    ...(local_host !== undefined && { hostHeader: local_host }),
  }
}

function tlsOf(isAny: boolean | undefined, ca: string | undefined): OriginOptions {
  if (isAny) return { appInsecure: true }
  if (ca === undefined) return {}
  try {
    return { appCa: readFileSync(ca, 'utf8') }
  } catch (cause) {
    throw optionInvalid(`local_ca: ${ca} cannot be read.`, { cause })
  }
}
