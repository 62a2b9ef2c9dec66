// One connection to a server on the JSON wire, also to existing servers: requests a name, and responds to requests.

import { randomBytes } from 'node:crypto'
import type { TextCarrier } from '../../../client/carriers/carrier.ts'
import type { Connection, ConnectionEvents, Registration, Wish } from '../../../client/carriers/connection.ts'
import { sha256 } from '../../../client/reach/probe.ts'
import type { ClientSettings } from '../../../client/settings.ts'
import type { TunnelSettings } from '../../../client/tunnels/tunnel-settings.ts'
import { deferred } from '../../../deferred.ts'
import { ERRORS, type ErrorCode, TunnelError } from '../../../errors.ts'
import { eventLoop } from '../../../event-loop.ts'
import { logsConnectionIn } from '../../../http/connection-logins.ts'
import { isRewriteTerms, Rewriting } from '../../../paths/rewriting.ts'
import type { CarrierHandler } from '../../../session/carrier.ts'
import { Heartbeat } from '../../../session/heartbeat.ts'
import { PROBE_HEADER, probeProof, serverProbeProof } from '../../../wire/control.ts'
import {
  encodeBody,
  encodeDisconnect,
  encodeReady,
  encodeResponse,
  type HeaderList,
  type JsonRequest,
  LEFT_OUT,
  nominatedBy,
  PING,
  parseServerMessage,
} from '../json.ts'
import { MAX_MESSAGE_BYTES } from './install.ts'
import { Budget, type OriginAnswer, OriginPool, type OriginRequest } from './origin-pool.ts'
import { originOf, originRequest } from './origin-request.ts'
import { publicUrls } from './public-urls.ts'

/** The maximum body of a response that fits in a message as base64, whatever its bytes. */
const MAX_BODY_BYTES = Math.floor(((MAX_MESSAGE_BYTES - 524_288) * 3) / 4)
/**
 * The time in milliseconds for the app if the server names none. Existing servers cut a visitor's request without a
 * body after 10 s, and others after 30 s.
 */
const UNTOLD_TIMEOUT_MS = 29_000
const UNTOLD_BODILESS_TIMEOUT_MS = 9_500
/** The longest wait in milliseconds for an app, even if the server waits without limit. */
const MAX_TIMEOUT_MS = 3_600_000

interface Registering {
  readonly name: string
  resolve(granted: Registration): void
  reject(error: TunnelError): void
}

export class JsonConnection implements Connection {
  readonly wire = 'json'
  readonly carrierHandler: CarrierHandler
  readonly #settings: ClientSettings
  readonly #events: ConnectionEvents
  readonly #carrier: TextCarrier
  #tunnel:
    | {
        readonly settings: TunnelSettings
        readonly origins: OriginPool
        readonly rewriting: Rewriting | undefined
      }
    | undefined
  readonly #heartbeat: Heartbeat
  /** The time in milliseconds that the server waits for a response, if it is known. */
  #serverTimeoutMs: number | undefined
  #registering: Registering | undefined
  #name = ''
  #isWatched = false
  #lastReport = 0
  #requests = 0
  #isClosed = false
  #hasSaidGoodbye = false
  /** Called when no request is in progress any more. */
  #drained: (() => void) | undefined
  readonly #checks = new Set<() => void>()
  readonly #asked = new Map<number | string, OriginRequest>()
  readonly #probeSecret = randomBytes(16).toString('base64url')
  readonly #probeProof = probeProof(this.#probeSecret, sha256)

  constructor(settings: ClientSettings, events: ConnectionEvents, carrier: TextCarrier) {
    this.#settings = settings
    this.#events = events
    this.#carrier = carrier
    this.#heartbeat = new Heartbeat(
      eventLoop,
      settings,
      () => carrier.sendText(PING),
      () => this.#end(new TunnelError('CARRIER_LOST')),
    )
    this.carrierHandler = {
      received() {},
      drained() {},
      closed: error =>
        this.#closed(
          error instanceof TunnelError ? error : new TunnelError('CARRIER_LOST', undefined, { cause: error }),
        ),
    }
  }

  take(text: string): void {
    this.heard()
    const message = parseServerMessage(text)
    // Unknown messages are ignored, as by existing clients.
    if (typeof message !== 'object' || this.#isClosed) return
    switch (message.type) {
      case 'connected':
        this.#serverTimeoutMs = message.originTimeoutMs
        return
      case 'registered':
        return this.#registered(message.subdomain, message.url)
      case 'subdomain_taken':
        return this.#settle(one =>
          one.reject(new TunnelError('NAME_TAKEN', `Another client uses the name "${one.name}".`)),
        )
      case 'error':
        return this.#settle(one => one.reject(refusal(message.message)))
      case 'request':
        return this.#answer(message)
      case 'cancel': {
        const asked = this.#asked.get(message.id)
        if (asked !== undefined) this.#tunnel?.origins.cancel(asked)
        return
      }
    }
  }

  /** Called when any bytes arrived. */
  heard(): void {
    this.#heartbeat.hasHeard = true
    if (this.#checks.size === 0) return
    for (const cancel of this.#checks) cancel()
    this.#checks.clear()
  }

  // ── Connection ─────────────────────────────────────────────────────────────────────────────────────────────

  register(settings: TunnelSettings, { name = '', wishes = {} }: Wish): Promise<Registration> {
    const { kind, token, routes, isWildcard, pool, health, guard, hostNames, protocol, inbox } = settings
    if (settings.registersAs !== undefined)
      return Promise.reject(new TunnelError('FEATURE_UNSUPPORTED', 'The JSON wire has no private services.'))
    if (inbox !== undefined) {
      const text = 'The server speaks the JSON wire, which has no inbox.'
      return Promise.reject(new TunnelError('INBOX_REFUSED', text))
    }
    const { rewriting, ...others } = wishes
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) {
      const text = `The server speaks the JSON wire, which has no option ${unknown}.`
      return Promise.reject(new TunnelError('FEATURE_UNSUPPORTED', text))
    }
    if (guard !== undefined) {
      const text = 'The server speaks the JSON wire, which has no guards, so the tunnel is not opened.'
      return Promise.reject(new TunnelError('FEATURE_UNSUPPORTED', text))
    }
    const isAlone = kind === 'http' && protocol === undefined && token === undefined && pool === undefined
    const isPlain =
      isAlone && routes.length === 0 && !isWildcard && health === undefined && hostNames === undefined
    if (!isPlain || (this.#tunnel !== undefined && this.#tunnel.settings !== settings)) {
      const message =
        'The server speaks the JSON wire, which carries one plain HTTP tunnel: no other kind, no token of its own, no routes, no wildcard, no hosts, no HTTP/2, no pool, no health checks.'
      return Promise.reject(new TunnelError('KIND_REFUSED', message))
    }
    this.#tunnel ??= {
      settings,
      rewriting: isRewriteTerms(rewriting) ? new Rewriting(rewriting) : undefined,
      origins: new OriginPool(settings.origin, new Budget(this.#settings.limits.maxCollectedBytes)),
    }
    const { promise, resolve, reject } = deferred<Registration>()
    this.#registering = { name, resolve, reject }
    if (this.#isClosed) reject(new TunnelError('CARRIER_LOST'))
    else this.#carrier.sendText(encodeReady(name))
    return promise
  }

  release(): void {
    void this.drain().then(() => this.leave())
  }

  /**
   * Releases the names after the last response. Our server frees a name and then closes; others close at once, so
   * their message is sent after the last response.
   */
  async drain(): Promise<void> {
    if (this.#isClosed) return
    const { promise: over, resolve } = deferred()
    const cancel = eventLoop.after(this.#settings.drainTimeoutMs, resolve)
    this.#drained = resolve
    if (this.#serverTimeoutMs !== undefined) this.#sayGoodbye()
    else if (this.#requests === 0) resolve()
    await over
    cancel()
  }

  #sayGoodbye(): void {
    if (this.#name !== '' && !this.#hasSaidGoodbye) this.#carrier.sendText(encodeDisconnect(this.#name))
    this.#hasSaidGoodbye = true
  }

  health(): void {}

  watch(on: boolean): void {
    this.#isWatched = on
  }

  /** 0, because this wire does not measure it. */
  readonly roundTripMs = 0

  checkAlive(withinMs: number): void {
    this.#checks.add(eventLoop.after(withinMs, () => this.#end(new TunnelError('CARRIER_LOST'))))
    this.#carrier.sendText(PING)
  }

  async leave(): Promise<void> {
    this.#sayGoodbye()
    this.#carrier.close()
    this.#closed(new TunnelError('CANCELLED'))
  }

  terminate(): void {
    this.#end(new TunnelError('CARRIER_LOST'))
  }

  // ── Requests ───────────────────────────────────────────────────────────────────────────────────────────────

  #answer(request: JsonRequest): void {
    if (this.#isProbe(request)) {
      const answer = { status: 204, headers: [[PROBE_HEADER, 'ok']] as const, body: NO_BODY }
      this.#carrier.sendText(encodeResponse(request.id, answer))
      return
    }
    const report = this.#begin(request)
    if (this.#requests > this.#settings.limits.maxStreams) return this.#fail(request, report, 'TUNNEL_BUSY')
    const tunnel = this.#tunnel
    if (tunnel === undefined) return this.#fail(request, report, 'BAD_REQUEST')
    const bytes = originRequest(this.#marked(request), tunnel.settings, tunnel.rewriting)
    if (typeof bytes === 'string') return this.#fail(request, report, bytes)
    const { method, body, connection } = request
    const timeoutMs = this.#timeoutMs(body !== undefined)
    const asked = {
      method,
      bytes,
      timeoutMs,
      maxBodyBytes: MAX_BODY_BYTES,
      logsConnectionIn: request.headers.some(logsConnectionIn),
      connection,
    }
    this.#asked.set(request.id, asked)
    tunnel.origins.request(asked, (outcome, reason) => {
      this.#asked.delete(request.id)
      if (!(outcome instanceof TunnelError)) return this.#send(request, report, outcome)
      if (outcome.code === 'CANCELLED') return this.#finish(report, 0, 0, { error: 'CANCELLED' })
      if (!isServersProbe(request)) this.#events.error(outcome)
      this.#fail(request, report, outcome.code, reason)
    })
  }

  /** Whether this is our own probe through the public URL, which does not go to the app. Only this client knows the proof. */
  #isProbe({ method, headers }: JsonRequest): boolean {
    if (method !== 'HEAD') return false
    return headers.some(([name, value]) => value === this.#probeProof && name.toLowerCase() === PROBE_HEADER)
  }

  /** Adds the header of the other wire to the server's probes, by which the inspector recognises them. */
  #marked(request: JsonRequest): JsonRequest {
    if (request.isProbe !== true) return request
    const mark = [PROBE_HEADER, serverProbeProof(this.#probeSecret, sha256)] as const
    return { ...request, headers: [...request.headers, mark] }
  }

  #timeoutMs(hasBody: boolean): number {
    if (this.#serverTimeoutMs === undefined) return hasBody ? UNTOLD_TIMEOUT_MS : UNTOLD_BODILESS_TIMEOUT_MS
    return this.#serverTimeoutMs === 0 ? MAX_TIMEOUT_MS : Math.min(this.#serverTimeoutMs, MAX_TIMEOUT_MS)
  }

  #send(request: JsonRequest, report: Report, { status, headers, body }: OriginAnswer): void {
    const isBodiless = request.method === 'HEAD' || status === 204 || status === 304
    const encoded = encodeBody(body, contentTypeOf(headers))
    const answer = { status, headers: this.#rewritten(request, passedOn(headers, isBodiless)), body: encoded }
    let message = encodeResponse(request.id, answer)
    if (
      !encoded.isBase64 &&
      message.length * 3 > MAX_MESSAGE_BYTES &&
      Buffer.byteLength(message) > MAX_MESSAGE_BYTES
    ) {
      // Escapes and characters of several bytes made the text too long.
      message = encodeResponse(request.id, { ...answer, body: encodeBody(body, undefined) })
    }
    this.#carrier.sendText(message)
    this.#finish(report, status, body.length)
  }

  #rewritten(request: JsonRequest, headers: HeaderList): HeaderList {
    const rewriting = this.#tunnel?.rewriting
    const origin = rewriting && originOf(request)
    if (rewriting === undefined || origin === undefined) return headers
    return headers.map(([name, value]) => [name, rewriting.responseValue(name.toLowerCase(), value, origin)])
  }

  /** Responds as existing clients do; `error` tells our server more. */
  #fail(request: JsonRequest, report: Report, code: ErrorCode, reason?: string): void {
    const { status, meaning, action } = ERRORS[code]
    const { label = 'the app' } = this.#tunnel?.settings.origin ?? {}
    const isDown = NOT_REACHED.has(code)
    const text = JSON.stringify({
      error: status === 502 ? 'Bad Gateway' : code,
      message: isDown ? `Could not connect to local server at ${label}` : meaning,
      details: `${meaning} ${action}`,
    })
    const headers: HeaderList = [['Content-Type', 'application/json']]
    this.#carrier.sendText(
      encodeResponse(request.id, { status, headers, body: { text, isBase64: false }, error: code, reason }),
    )
    this.#finish(report, status, text.length, { error: code, ...(reason !== undefined && { reason }) })
  }

  #begin(request: JsonRequest): Report {
    this.#requests++
    const { method, path } = request
    const isWatched = this.#isWatched && !isServersProbe(request)
    const report = { id: ++this.#lastReport, startedAt: performance.now(), isWatched }
    if (report.isWatched) this.#events.request({ id: report.id, tunnel: this.#name, method, path })
    return report
  }

  #finish(
    { id, startedAt, isWatched }: Report,
    status: number,
    bytes: number,
    failure?: { readonly error: ErrorCode; readonly reason?: string },
  ): void {
    this.#requests--
    if (this.#requests === 0 && this.#serverTimeoutMs === undefined) this.#drained?.()
    if (!isWatched) return
    const durationMs = Math.round((performance.now() - startedAt) * 100) / 100
    this.#events.response({ id, status, durationMs, bytes, ...failure })
  }

  // ── Registration and the end ───────────────────────────────────────────────────────────────────────────────

  #settle(how: (registering: Registering) => void): void {
    const registering = this.#registering
    this.#registering = undefined
    if (registering !== undefined) how(registering)
  }

  #registered(name: string, named: string | undefined): void {
    this.#name = name
    // Our server says how long it waits, and knows its own URL.
    const isOurs = this.#serverTimeoutMs !== undefined
    const [url, ...otherUrls] = publicUrls(name, named, this.#settings.server, isOurs)
    const probeSecret = this.#probeSecret
    // An address has no names below it.
    if (!URL.canParse(url)) return this.#settle(one => one.reject(new TunnelError('SERVER_REFUSED', NO_URL)))
    this.#settle(one => one.resolve({ tunnel: 1, name, url, otherUrls, probeSecret }))
  }

  #end(error: TunnelError): void {
    this.#carrier.terminate()
    this.#closed(error)
  }

  #closed(error: TunnelError): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#heartbeat.stop()
    for (const cancel of this.#checks) cancel()
    this.#drained?.()
    this.#tunnel?.origins.close()
    this.#settle(one => one.reject(error))
    this.#events.closed(error)
  }
}

const NO_URL = 'The server names no URL for the tunnel: connect to its host name instead of its address.'

/** The codes for requests that did not reach the app. */
const NOT_REACHED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ORIGIN_REFUSED',
  'ORIGIN_UNREACHABLE',
  'ORIGIN_TLS',
  'ORIGIN_SCHEME',
])

/** Whether the server asks for its operator. Only this exact request is treated as a probe. */
function isServersProbe({ isProbe, method, path, body }: JsonRequest): boolean {
  return isProbe === true && method === 'HEAD' && path === '/' && body === undefined
}

const NO_BODY = { text: '', isBase64: false }

interface Report {
  readonly id: number
  readonly startedAt: number
  readonly isWatched: boolean
}

/** Passes on the length of a body that is not sent, for the visitor. Only this message contains it. */
function passedOn(headers: HeaderList, isBodiless: boolean): HeaderList {
  const nominated = nominatedBy(headers)
  return headers.filter(([name]) => {
    const lower = name.toLowerCase()
    if (nominated?.has(lower)) return false
    return !LEFT_OUT.has(lower) || (isBodiless && lower === 'content-length')
  })
}

/** Returns the content type of text; `undefined` for compressed text. */
function contentTypeOf(headers: HeaderList): string | undefined {
  let contentType: string | undefined
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    if (lower === 'content-encoding' && value.toLowerCase() !== 'identity') return undefined
    if (lower === 'content-type') contentType = value
  }
  return contentType
}

/** The codes of our server's refusals, whose message already contains the next step. */
const SAID: readonly ErrorCode[] = [
  'NOT_ALLOWED',
  'TOKEN_REFUSED',
  'TOKEN_EXPIRED',
  'NAME_RESERVED',
  'CLIENT_LIMIT',
  'TOO_MANY_REFUSALS',
  'CLUSTER_UNREACHABLE',
]

function refusal(message: string): TunnelError {
  const said = SAID.find(code => message.endsWith(` ${ERRORS[code].action}`))
  if (said !== undefined) return new TunnelError(said, message.slice(0, -ERRORS[said].action.length - 1))
  if (/invalid subdomain/i.test(message))
    return new TunnelError('NAME_INVALID', `The server says: ${message}.`)
  if (/limit/i.test(message)) return new TunnelError('CLIENT_LIMIT', `The server says: ${message}.`)
  if (/reserved/i.test(message)) return new TunnelError('NAME_RESERVED', `The server says: ${message}`)
  return new TunnelError('SERVER_REFUSED', `The server says: ${message}`)
}
