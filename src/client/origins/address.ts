// An origin with an address: a port, a URL, or a unix socket.

import { deferred } from '../../deferred.ts'
import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Address, Dial, Socket, SocketHandler } from '../../socket.ts'
import { alertOf, distrustOf } from '../carriers/tls-faults.ts'
import type { Origin } from './origin.ts'
import { Silence } from './silence.ts'
import { answeredPlain, UNTRUSTED } from './tls-check.ts'

export interface AddressOriginOptions {
  readonly address: Address
  /** The longest wait for the connection, in milliseconds. */
  readonly connectTimeoutMs: number
  readonly dial: Dial
  /** Whether each connection carries HTTP, so that an app which sends nothing did not understand it. Default `false`. */
  readonly isHttp?: boolean
}

export class AddressOrigin implements Origin {
  readonly label: string
  readonly url: string
  readonly #options: AddressOriginOptions
  /** The same address in the other scheme: `https://localhost:3000`. */
  readonly #otherUrl: string
  readonly #silence: Silence | undefined

  constructor(options: AddressOriginOptions) {
    this.#options = options
    const { address, dial, isHttp } = options
    const { host = 'localhost', port, unix, tls } = address
    const hostname = host.includes(':') ? `[${host}]` : host
    const urlOf = (isSecure: boolean) => {
      const isDefaultPort = port === (isSecure ? 443 : 80)
      return `${isSecure ? 'https' : 'http'}://${hostname}${isDefaultPort ? '' : `:${port}`}`
    }
    this.url = unix === undefined ? urlOf(tls !== undefined) : 'http://localhost'
    this.#otherUrl = urlOf(tls === undefined)
    const isExplained = isHttp === true && tls === undefined && unix === undefined
    this.#silence = isExplained ? new Silence(address, dial, this.#otherUrl) : undefined
    this.label = unix ?? (tls === undefined ? `${hostname}:${port}` : this.url)
  }

  async connect(handler: SocketHandler): Promise<Socket> {
    const { dial, address, connectTimeoutMs } = this.#options
    const watched = this.#silence?.watch(handler)
    const dialled = dial(address, watched?.handler ?? handler)
    const { promise: tooLate, reject } = deferred<never>()
    const timer = setTimeout(() => reject(new TunnelError('ORIGIN_UNREACHABLE')), connectTimeoutMs)
    try {
      const socket = await Promise.race([dialled, tooLate])
      return watched?.opened(socket) ?? socket
    } catch (cause) {
      // Closes a connection that opens too late. A failed dial was reported already.
      dialled.then(socket => socket.terminate(), ignore)
      if (address.tls !== undefined && answeredPlain(cause)) {
        const detail = `The app on port ${address.port} does not speak TLS: use ${this.#otherUrl}`
        throw new TunnelError('ORIGIN_SCHEME', detail, { cause })
      }
      const code = codeOf(cause)
      if (code === 'ORIGIN_TLS') throw tlsError(this.label, cause)
      throw new TunnelError(code, `Cannot connect to ${this.label}.`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }
}

function ignore(): void {}

/** Makes the error with the reason. The next step of the code is about certificates, which may not be the problem. */
function tlsError(label: string, cause: unknown): TunnelError {
  if (!(cause instanceof Error) || cause instanceof TunnelError)
    return new TunnelError('ORIGIN_TLS', undefined, { cause })
  const code = 'code' in cause ? String(cause.code) : ''
  if (UNTRUSTED.test(code)) {
    const { reason, action } = distrustOf(code, cause.message, 'app')
    return new TunnelError('ORIGIN_TLS', `The certificate of ${label} is not trusted: ${reason}.`, {
      cause,
      action,
    })
  }
  const { reason, action = '' } = alertOf(code, cause.message, 'app') ?? { reason: cause.message }
  return new TunnelError('ORIGIN_TLS', `No TLS with ${label}: ${reason}.${action && ` ${action}`}`, {
    cause,
    action: '',
  })
}

function codeOf(cause: unknown): ErrorCode {
  if (cause instanceof TunnelError) return cause.code
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ECONNREFUSED' || code === 'ENOENT') return 'ORIGIN_REFUSED'
  // Bun 1.4.5 reports EPROTO for a failed handshake.
  return UNTRUSTED.test(code) || /TLS|SSL|EPROTO/.test(code) ? 'ORIGIN_TLS' : 'ORIGIN_UNREACHABLE'
}
