// An observer that makes one OpenTelemetry span for each visit, with the API that the operator installed and configured.

import type { Span, SpanContext, Tracer } from '@opentelemetry/api'
import { optionInvalid } from '../errors.ts'
import type { ForTunnels, Observer, Outcome, Seen } from '../plugin.ts'
import { VERSION } from '../version.ts'

export interface OpenTelemetryOptions extends ForTunnels {
  /** Whether spans have the path of requests, which may hold secrets of the app's users. Queries never. Default `true`. */
  readonly path?: boolean
}

type Api = typeof import('@opentelemetry/api')

/**
 * An observer for `observers` of a server: a span for each request, upgrade, TCP and TLS connection, of the tracer provider that the
 * program has registered. A visitor's trace goes on, and the app's spans are children of ours: with it, `tracing` of the server is on.
 * Rejects with `OPTION_INVALID` when the package `@opentelemetry/api` is not installed.
 */
export async function openTelemetry(options: OpenTelemetryOptions = {}): Promise<Observer> {
  const api = await load()
  const { tunnels, path = true } = options
  return new Telemetry(api, path, tunnels)
}

async function load(): Promise<Api> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    throw optionInvalid(
      'openTelemetry() needs the package @opentelemetry/api beside localtunnels: npm install @opentelemetry/api',
      { cause },
    )
  }
}

class Telemetry implements Observer {
  readonly name = 'opentelemetry'
  readonly tunnels?: readonly string[]
  readonly #api: Api
  readonly #tracer: Tracer
  readonly #hasPath: boolean
  readonly #spans = new Map<number, Span>()

  constructor(api: Api, hasPath: boolean, tunnels: readonly string[] | undefined) {
    this.#api = api
    this.#tracer = api.trace.getTracer('localtunnels', VERSION)
    this.#hasPath = hasPath
    if (tunnels !== undefined) this.tunnels = tunnels
  }

  trace(seen: Seen, parent: string | undefined): string | undefined {
    const span = this.#begin(seen, parent)
    const { traceId, spanId, traceFlags } = span.spanContext()
    // Nothing is configured: the server's own trace continues.
    if (!this.#api.isSpanContextValid(span.spanContext())) return undefined
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  }

  began(seen: Seen): void {
    // A request begins with `trace`.
    if (seen.kind !== 'http') this.#begin(seen, undefined)
  }

  ended(seen: Seen, { status, code, requestBytes, responseBytes, waitMs, appMs, token }: Outcome): void {
    const span = this.#spans.get(seen.id) ?? this.#begin(seen, undefined)
    this.#spans.delete(seen.id)
    span.setAttributes({
      'http.request.size': requestBytes,
      'http.response.size': responseBytes,
      'localtunnels.wait_ms': waitMs,
      'localtunnels.app_ms': appMs,
      ...(status > 0 && { 'http.response.status_code': status }),
      ...(token !== undefined && { 'localtunnels.token': token }),
      ...((code !== undefined || status >= 500) && { 'error.type': code ?? String(status) }),
    })
    if (code !== undefined || status >= 500) span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
    span.end()
  }

  /** The names follow the semantic conventions for HTTP spans since version 1.23.0. */
  #begin(
    { id, kind, method, target, host, address, tunnel, requestId }: Seen,
    parent: string | undefined,
  ): Span {
    const { trace, ROOT_CONTEXT, SpanKind } = this.#api
    const remote = parent && contextOf(parent)
    const span = this.#tracer.startSpan(
      // A path could have too many different names.
      kind === 'http' ? methodOf(method) : kind,
      {
        kind: SpanKind.SERVER,
        attributes: {
          'client.address': address,
          'localtunnels.tunnel': tunnel,
          ...(requestId !== undefined && { 'localtunnels.request_id': requestId }),
          ...(kind === 'http' && {
            'http.request.method': methodOf(method),
            'server.address': host,
            ...(this.#hasPath && { 'url.path': pathOf(target) }),
          }),
        },
      },
      remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT,
    )
    this.#spans.set(id, span)
    return span
  }
}

function contextOf(traceparent: string): SpanContext {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}

const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
])

const methodOf = (method: string): string => (METHODS.has(method) ? method : '_OTHER')

function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}
