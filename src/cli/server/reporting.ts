// Turns the events of a server into events of the command's output.

import { ERRORS } from '../../errors.ts'
import type { ServerEnd } from '../ends.ts'
import type { Output } from '../output.ts'
import { describe, responseEvent, suppressedEvent, visitorEvent } from '../sharing/report.ts'
import { Totals } from '../sharing/totals.ts'
import { Refusals } from './refusals.ts'
import type { TokenSource } from './token-source.ts'

/** Returns the totals, which are printed at the end. `tokens` store the time of each last use. */
export function reportEvents(server: ServerEnd, output: Output, tokens: TokenSource | undefined): Totals {
  const totals = new Totals(true)
  let requests = 0
  // Fields are copied one by one, because the output is a public format and the server's events are not.
  server.on('connection', ({ subdomain, wire, remoteAddress, token, kind }) => {
    if (token !== undefined) tokens?.used(token)
    output.event({
      type: 'connection',
      subdomain,
      wire,
      remoteAddress,
      ...(token !== undefined && { token }),
      ...(kind !== undefined && { kind }),
    })
  })
  server.on('disconnection', ({ subdomain, reason, kind }) =>
    output.event({ type: 'disconnection', subdomain, reason, ...(kind !== undefined && { kind }) }),
  )
  server.on('request', event => {
    const seen = { id: ++requests, ...event }
    totals.ended(seen)
    output.event({ ...responseEvent(seen), subdomain: event.subdomain })
  })
  server.on('requests', counts => {
    totals.unreported(counts)
    output.event(suppressedEvent(counts))
  })
  server.on('visitorConnected', ({ id, tunnel, remoteAddress, remotePort }) =>
    output.event({ type: 'visitorConnected', id, tunnel, remoteAddress, remotePort }),
  )
  server.on('visitorDisconnected', event => {
    totals.visitorDisconnected(event)
    output.event(visitorEvent(event))
  })
  const refusals = new Refusals(output)
  server.on('refused', event => refusals.refused(event))
  server.on('warning', ({ code }) =>
    output.event({ type: 'notice', code, message: `Warning: ${ERRORS[code].meaning}` }),
  )
  server.on('error', error => output.event({ type: 'error', ...describe(error) }))
  return totals
}
