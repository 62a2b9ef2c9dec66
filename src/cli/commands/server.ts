// `localtunnels server`: runs a TunnelServer until it is told to stop.

import { TunnelError } from '../../errors.ts'
import type { TunnelServerOptions } from '../../server/options.ts'
import { createServer } from '../ends.ts'
import type { Run } from '../run.ts'
import { visitorEvent } from '../sharing.ts'
import { aborted } from '../stop.ts'
import { Totals } from '../totals.ts'

export async function serve(options: TunnelServerOptions, run: Run): Promise<void> {
  const { output } = run
  const server = await createServer(options)
  const totals = new Totals(true)
  let requests = 0
  server.on('connection', event => output.event({ type: 'connection', ...event }))
  server.on('disconnection', event => output.event({ type: 'disconnection', ...event }))
  server.on('request', event => {
    const id = ++requests
    totals.ended({ id, ...event })
    output.event({ type: 'response', id, ...event })
  })
  server.on('visitorConnected', event => output.event({ type: 'visitorConnected', ...event }))
  server.on('visitorDisconnected', event => {
    totals.visitorDisconnected(event)
    output.event(visitorEvent(event))
  })
  server.on('error', error => {
    output.event({
      type: 'error',
      code: error instanceof TunnelError ? error.code : 'INTERNAL',
      message: error.message,
    })
  })
  await server.start()
  const domains = options.domains ?? ['localhost']
  output.event({ type: 'listening', url: server.url, port: server.port, domains })
  await aborted(run.stop)
  output.event({ type: 'draining', requests: 0 })
  await server.stop()
  output.event(totals.event())
}
