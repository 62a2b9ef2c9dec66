// TunnelClient: gives a local app a public URL and keeps it, whatever happens to the network.
/// <reference lib="esnext.disposable" preserve="true" />

import { deferred } from '../deferred.ts'
import { TunnelError } from '../errors.ts'
import { Events } from '../events.ts'
import { alternativeNames, calculateBackoff } from '../names.ts'
import { dial } from '../sockets/dial.ts'
import { stopped } from './carrier.ts'
import { connector } from './connect.ts'
import type {
  Connect,
  Connection,
  ConnectionEvents,
  Registration,
  RequestSeen,
  ResponseSeen,
} from './connection.ts'
import type { TunnelClientEvents, TunnelClientOptions, TunnelState } from './options.ts'
import { probePublicSide } from './probe.ts'
import { type ClientSettings, clientSettings } from './settings.ts'
import { watchForWake } from './wake.ts'

/** After the machine woke, how long the old connection has to prove that it lives. */
const WAKE_CHECK_MS = 3_000
/** Codes that end reconnecting. Not SERVER_REFUSED: some proxies answer 404 while the server behind them restarts. */
const REFUSED_FOR_GOOD: ReadonlySet<string> = new Set([
  'TOKEN_REFUSED',
  'NAME_RESERVED',
  'NAME_INVALID',
  'OPTION_INVALID',
  // Trying a wrong password again and again locks accounts.
  'PROXY_AUTH_REFUSED',
])
/** Requests seen whose answer was not reported yet. A server of ours has fewer; what another one leaves out is forgotten. */
const MAX_REQUESTS_SEEN = 10_000

/**
 * A tunnel client. `connect()` resolves once the public URL is registered; a lost connection is then made again for
 * ever (unless `reconnect` is false) and the URL stays. It never throws outside of its own methods and never exits
 * the process; what goes wrong arrives as an `error` event with a stable `code`.
 *
 * Throws `OPTION_INVALID`, `PORT_INVALID` or `NAME_INVALID` for options that cannot be used.
 */
export class TunnelClient extends Events<TunnelClientEvents> implements AsyncDisposable {
  readonly #settings: ClientSettings
  readonly #connect: Connect
  #state: TunnelState = 'idle'
  #connection: Connection | undefined
  #registration: Registration | undefined
  /** Ends the attempts under way. */
  #stopping = new AbortController()
  #stopWatchingForWake: (() => void) | undefined
  #wakeBackoff: (() => void) | undefined
  #leaving: Promise<void> | undefined
  /** Tries since the last connection that lasted. */
  #attempt = 0
  #connectedAt = 0
  readonly #requests = new Map<number, RequestSeen>()

  constructor(options: TunnelClientOptions) {
    super()
    this.#settings = clientSettings(options, process.env, dial)
    this.#connect = connector(this.#settings)
  }

  /**
   * Connects and registers. Rejects with `SERVER_UNREACHABLE`, `SERVER_REFUSED`, `CONNECT_TIMEOUT`, `TOKEN_REFUSED`,
   * `NAME_TAKEN`, `NAME_RESERVED`, `PROXY_UNREACHABLE`, `PROXY_AUTH_REFUSED`, `PROXY_REFUSED`, or `STATE_INVALID` when it is connected already; nothing goes on in the background
   * then, and `connect` may be called again.
   */
  async connect(): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'closed') {
      throw new TunnelError('STATE_INVALID', `The client is ${this.#state} already.`)
    }
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#attempt = 0
    this.#state = 'connecting'
    try {
      await this.#establish()
    } catch (error) {
      // `disconnect` and another `connect` may have come meanwhile: the state is theirs then.
      if (!stopping.signal.aborted) this.#state = 'idle'
      throw error
    }
    if (!stopping.signal.aborted) this.#stopWatchingForWake ??= watchForWake(() => this.#woke())
  }

  /** Gives the name back and closes. Requests under way are cut; resolves once the server has closed too. */
  async disconnect(): Promise<void> {
    if (this.#state !== 'idle' && this.#state !== 'closed') {
      const connection = this.#connection
      this.#end()
      this.#leaving = connection?.leave()
    }
    await this.#leaving
  }

  /** The public URL. Throws `STATE_INVALID` before the first registration. */
  getTunnelUrl(): string {
    return this.#registered().url
  }

  /** The name that was granted: the wished one, or another when it was taken. */
  getSubdomain(): string {
    return this.#registered().name
  }

  /** Whether the tunnel is registered and its connection up: `getState()` is `connected`. */
  isConnected(): boolean {
    return this.#state === 'connected'
  }

  /** What the client is doing; every change comes with an event. */
  getState(): TunnelState {
    return this.#state
  }

  /**
   * Sends a request to the public URL that the server answers itself, after a round trip to this client: `true` when
   * visitors can reach the tunnel. The app is not asked. On the JSON wire only the connection is known: `isConnected()`.
   */
  async probe(timeoutMs = 5_000): Promise<boolean> {
    const { url, resume } = this.#registered()
    if (resume === undefined) return this.isConnected()
    return probePublicSide(this.#settings.dial, url, resume, timeoutMs)
  }

  /** `disconnect()`, at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect()
  }

  protected override listenersChanged(event: keyof TunnelClientEvents): void {
    if (event !== 'request' && event !== 'response') return
    this.#connection?.watch(this.#isWatched)
    // Nobody will report the answers of these.
    if (!this.#isWatched) this.#requests.clear()
  }

  get #isWatched(): boolean {
    return this.hasListeners('request') || this.hasListeners('response')
  }

  #registered(): Registration {
    if (this.#registration !== undefined) return this.#registration
    throw new TunnelError('STATE_INVALID', 'The client is not registered yet.')
  }

  /** One attempt: dial, register under the old name or the first free one. */
  async #establish(): Promise<void> {
    const { signal } = this.#stopping
    const startedAt = performance.now()
    let connection: Connection | undefined
    let end: TunnelError | undefined
    connection = await this.#connect(
      this.#connectionEvents(error => {
        end = error
        if (connection !== undefined && this.#connection === connection) this.#lost(error)
      }),
      signal,
    )
    const registration = await this.#registerInTime(connection, startedAt)
    // Granted and lost in the same moment.
    if (end !== undefined) throw end
    this.#connection = connection
    this.#registration = registration
    this.#state = 'connected'
    this.#connectedAt = performance.now()
    this.emit('connected', { url: registration.url, subdomain: registration.name, wire: connection.wire })
  }

  /** Registers within what is left of `connectTimeoutMs`, or ends the connection. */
  async #registerInTime(connection: Connection, startedAt: number): Promise<Registration> {
    const { signal } = this.#stopping
    const { connectTimeoutMs } = this.#settings
    const stop = () => connection.terminate()
    let isTooLate = false
    const timer = setTimeout(
      () => {
        isTooLate = true
        connection.terminate()
      },
      startedAt + connectTimeoutMs - performance.now(),
    )
    signal.addEventListener('abort', stop)
    try {
      // Before the name is granted, so that requests which wait for it are reported too.
      if (this.#isWatched) connection.watch(true)
      const registration = await this.#register(connection)
      if (!signal.aborted) return registration
      throw stopped()
    } catch (error) {
      connection.terminate()
      if (signal.aborted) throw stopped()
      throw isTooLate ? new TunnelError('CONNECT_TIMEOUT') : error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  async #register(connection: Connection): Promise<Registration> {
    const wished = this.#registration?.name ?? this.#settings.name
    try {
      return await connection.register(wished, this.#registration?.resume)
    } catch (error) {
      if (!isTaken(error)) throw error
      for (const alternative of alternativeNames(wished)) {
        try {
          return await connection.register(alternative, undefined)
        } catch (another) {
          if (!isTaken(another)) throw another
        }
      }
      throw error
    }
  }

  #connectionEvents(closed: (error: TunnelError) => void): ConnectionEvents {
    return {
      request: report => {
        if (this.#requests.size >= MAX_REQUESTS_SEEN) this.#requests.clear()
        this.#requests.set(report.id, report)
        this.emit('request', { id: report.id, method: report.method, path: report.path })
      },
      response: report => this.#responded(report),
      error: error => this.emit('error', error),
      // The server closes the connection when it is done; reconnecting begins then.
      leaving: () => {},
      closed,
    }
  }

  #responded(report: ResponseSeen): void {
    const request = this.#requests.get(report.id)
    if (request === undefined) return
    this.#requests.delete(report.id)
    const { method, path } = request
    this.emit('response', { ...report, method, path })
  }

  #lost(error: TunnelError): void {
    this.#connection = undefined
    this.#requests.clear()
    if (this.#state !== 'connected') return
    const { signal } = this.#stopping
    // One that grants and hangs up at once, again and again, is tried like one that is down.
    if (performance.now() - this.#connectedAt > this.#settings.maxBackoffMs) this.#attempt = 0
    this.#state = this.#settings.isReconnecting ? 'reconnecting' : 'closed'
    this.emit('disconnected', { error })
    // A listener may have called `disconnect`, or `connect`.
    if (signal.aborted || this.#stopping.signal !== signal) return
    if (this.#settings.isReconnecting) void this.#reconnect()
    else this.#end(error)
  }

  /** Tries until it works, it is told to stop, or the server says no for good. Never rejects. */
  async #reconnect(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const attempt = ++this.#attempt
      const delayMs = calculateBackoff(attempt, { maxMs: this.#settings.maxBackoffMs })
      this.emit('reconnecting', { attempt, delayMs })
      if (signal.aborted) return
      await this.#pause(delayMs)
      if (signal.aborted) return
      try {
        return await this.#establish()
      } catch (cause) {
        if (signal.aborted) return
        const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
        if (REFUSED_FOR_GOOD.has(error.code)) return this.#end(error)
        this.emit('error', error)
      }
    }
  }

  /** Waits, but not beyond a wake-up of the machine or the end of the client. */
  #pause(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve()
    const { promise, resolve } = deferred<void>()
    const timer = setTimeout(resolve, ms)
    this.#wakeBackoff = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }

  #woke(): void {
    this.#wakeBackoff?.()
    this.#connection?.checkAlive(WAKE_CHECK_MS)
  }

  #end(error?: TunnelError): void {
    this.#state = 'closed'
    this.#connection = undefined
    this.#requests.clear()
    this.#stopping.abort()
    this.#wakeBackoff?.()
    this.#stopWatchingForWake?.()
    this.#stopWatchingForWake = undefined
    this.emit('close', error === undefined ? {} : { error })
  }
}

/** Starts a client and resolves once its URL answers: `const tunnel = await connectTunnel({ port: 3000 })`. */
export async function connectTunnel(options: TunnelClientOptions): Promise<TunnelClient> {
  const client = new TunnelClient(options)
  await client.connect()
  return client
}

function isTaken(error: unknown): boolean {
  return error instanceof TunnelError && error.code === 'NAME_TAKEN'
}
