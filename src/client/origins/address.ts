// Origin at an address: a port, a URL, a unix socket.

import { deferred } from '../../deferred.ts'
import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Address, Dial, Socket, SocketHandler } from '../../socket.ts'
import type { Origin } from '../origin.ts'

export interface AddressOriginOptions {
  readonly address: Address
  /** Longest wait for the connection, milliseconds. */
  readonly connectTimeoutMs: number
  readonly dial: Dial
}

export class AddressOrigin implements Origin {
  readonly label: string
  readonly url: string
  readonly #options: AddressOriginOptions

  constructor(options: AddressOriginOptions) {
    this.#options = options
    const { host = 'localhost', port, unix, tls } = options.address
    const scheme = tls === undefined ? 'http' : 'https'
    const isDefaultPort = port === (tls === undefined ? 80 : 443)
    const hostname = host.includes(':') ? `[${host}]` : host
    this.url =
      unix === undefined ? `${scheme}://${hostname}${isDefaultPort ? '' : `:${port}`}` : 'http://localhost'
    this.label = unix ?? (tls === undefined ? `${hostname}:${port}` : this.url)
  }

  async connect(handler: SocketHandler): Promise<Socket> {
    const { dial, address, connectTimeoutMs } = this.#options
    const dialled = dial(address, handler)
    const { promise: tooLate, reject } = deferred<never>()
    const timer = setTimeout(() => reject(new TunnelError('ORIGIN_UNREACHABLE')), connectTimeoutMs)
    try {
      return await Promise.race([dialled, tooLate])
    } catch (cause) {
      // A connection that comes up after all is not wanted any more; one that fails has been reported here.
      dialled.then(socket => socket.terminate(), ignore)
      throw new TunnelError(codeOf(cause), `Cannot connect to ${this.label}.`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }
}

function ignore(): void {}

function codeOf(cause: unknown): ErrorCode {
  if (cause instanceof TunnelError) return cause.code
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ECONNREFUSED' || code === 'ENOENT') return 'ORIGIN_REFUSED'
  // Bun 1.4.5 says EPROTO where the port does not speak TLS.
  return /CERT|TLS|SSL|SIGNED|ISSUER|ALTNAME|EPROTO/.test(code) ? 'ORIGIN_TLS' : 'ORIGIN_UNREACHABLE'
}
