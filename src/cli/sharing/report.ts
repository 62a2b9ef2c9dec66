// Passes the events of a client to the output and the totals, for every command that shares.

import type { InspectOptions, TunnelClientEvents } from '../../client/options.ts'
import { TunnelError } from '../../errors.ts'
import { maskedQueries } from '../../parts/inspect/form-secrets.ts'
import { secretsOf } from '../../parts/inspect/settings.ts'
import type { ClientEnd } from '../ends.ts'
import type { Output, ResponseEvent, SuppressedEvent, VisitorDisconnectedEvent } from '../output.ts'
import { asFlags } from '../words.ts'
import type { Totals } from './totals.ts'

export interface Reporting {
  readonly output: Output
  readonly totals: Totals
  /** The options of the inspector. Lines of the output mask the same secrets. */
  readonly inspect: boolean | InspectOptions | undefined
  /** Returns the name of the service with this tunnel, for `up`. */
  serviceOf?(tunnel: string): string | undefined
  /** Called when the app of this tunnel could not be reached, or failed. */
  originFailed(tunnel: string): void
}

/** Fields are copied one by one, because the output is a public format and the client's events are not. */
export function report(client: ClientEnd, to: Reporting): void {
  const { output, totals, inspect } = to
  const secrets = secretsOf(typeof inspect === 'object' ? inspect : {})
  const masked = (path: string) => maskedQueries(path, secrets)
  const nameOf = (tunnel: string) => {
    const service = to.serviceOf?.(tunnel)
    return service === undefined ? {} : { service }
  }
  const lookAfter = (tunnel: string, error: string | undefined) => {
    if (error?.startsWith('ORIGIN_')) to.originFailed(tunnel)
  }
  client.on('request', ({ id, tunnel, host, method, path }) => {
    totals.began(id)
    const request = { id, ...(host !== undefined && { host }), method, path: masked(path) }
    output.event({ type: 'request', ...request, ...nameOf(tunnel) })
  })
  client.on('upgraded', ({ id, tunnel, host, method, path }) => {
    const request = { id, ...(host !== undefined && { host }), method, path: masked(path) }
    output.event({ type: 'upgraded', ...request, ...nameOf(tunnel) })
  })
  client.on('response', event => {
    totals.ended(event)
    output.event({ ...responseEvent(event), path: masked(event.path), ...nameOf(event.tunnel) })
    lookAfter(event.tunnel, event.error)
  })
  client.on('requests', counts => {
    totals.unreported(counts)
    output.event(suppressedEvent(counts))
  })
  client.on('visitorConnected', ({ id, tunnel, remoteAddress, remotePort }) => {
    totals.visitorConnected(id)
    const visitor = { id, tunnel, remoteAddress, remotePort }
    output.event({ type: 'visitorConnected', ...visitor, ...nameOf(tunnel) })
  })
  client.on('visitorDisconnected', event => {
    totals.visitorDisconnected(event)
    output.event({ ...visitorEvent(event), ...nameOf(event.tunnel) })
    lookAfter(event.tunnel, event.error)
  })
  client.on('disconnected', ({ error }) => {
    output.event({ type: 'disconnected', ...(error && describe(error)) })
  })
  client.on('reconnecting', ({ attempt, delayMs }) =>
    output.event({ type: 'reconnecting', attempt, delayMs }),
  )
  client.on('error', error => {
    const { code, message } = describe(error)
    output.event({ type: 'error', code, message: asFlags(message, to.serviceOf !== undefined) })
  })
}

export function responseEvent(event: Omit<ResponseEvent, 'type'>): ResponseEvent {
  const { id, host, method, path, status, durationMs, bytes, error, reason, event: name } = event
  const asked = { id, ...(host !== undefined && { host }), method, path }
  const failure = { ...(error !== undefined && { error }), ...(reason !== undefined && { reason }) }
  return {
    type: 'response',
    ...asked,
    status,
    durationMs,
    bytes,
    ...failure,
    ...(name !== undefined && { event: name }),
  }
}

/** Makes the event for requests without a line of their own, whichever end counts them. */
export function suppressedEvent(
  counts: Pick<SuppressedEvent, 'requests' | 'errors'> & Partial<SuppressedEvent>,
): SuppressedEvent {
  const { started = 0, requests, errors } = counts
  return { type: 'suppressed', started, requests, opened: 0, connections: 0, errors, others: 0 }
}

/** Makes the event for the output, whichever end reports it. */
export function visitorEvent(event: TunnelClientEvents['visitorDisconnected']): VisitorDisconnectedEvent {
  const { id, tunnel, remoteAddress, remotePort, durationMs, bytesIn, bytesOut, error } = event
  const end = { id, tunnel, remoteAddress, remotePort, durationMs, bytesIn, bytesOut }
  return { type: 'visitorDisconnected', ...end, ...(error !== undefined && { error }) }
}

export function describe(error: Error): { readonly code: string; readonly message: string } {
  return { code: error instanceof TunnelError ? error.code : 'INTERNAL', message: error.message }
}
