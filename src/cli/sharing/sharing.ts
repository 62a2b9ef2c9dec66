// The steps of every command that shares something: connects, shows events, and drains at the end.

import type { TunnelClientOptions } from '../../client/options.ts'
import { deferred } from '../../deferred.ts'
import { stateFolder } from '../../state-folder.ts'
import { type ClientEnd, createClient, type ServerEnd } from '../ends.ts'
import type { Output, ReadyEvent } from '../output.ts'
import type { Run } from '../run.ts'
import { type Destination, serverOption, tellNotices } from '../settings/destination.ts'
import type { Target } from '../settings/target.ts'
import { aborted } from '../stop.ts'
import type { EmbeddedOptions } from './embedded-server.ts'
import { OriginWatch } from './origin-watch.ts'
import { connectPatiently, onEnd } from './patience.ts'
import { report } from './report.ts'
import { Totals } from './totals.ts'

/** The parts of one command. */
export interface Sharing {
  readonly destination: Destination
  readonly embedded?: EmbeddedOptions
  readonly client: Omit<TunnelClientOptions, 'server'>
  /** The targets of connections, which are checked while nothing listens there. */
  readonly targets: readonly Target[]
  /** Whether the totals name connections of raw tunnels even if there were none. */
  readonly countsConnections: boolean
  /** Requests the tunnels. Rejects with the refusal. */
  connect(client: ClientEnd): Promise<void>
  /** Shows each address, once visitors can use it. */
  ready(shared: Shared): Promise<void>
  /** Handles the client's events for this command, in addition to the output. */
  listen?(shared: Shared): void
}

/** The operations of a command while it shares. */
export interface Shared {
  readonly client: ClientEnd
  readonly run: Run
  /** Reports that an address responds. */
  announce(
    this: void,
    what: Pick<ReadyEvent, 'kind' | 'url' | 'subdomain' | 'origin' | 'inspector' | 'isEnd'>,
  ): void
}

/** Runs the command. Resolves after a clean end; rejects if a tunnel could not be made or is lost for good. */
export async function share(sharing: Sharing, run: Run): Promise<void> {
  const embedded =
    sharing.destination.servers.length === 0
      ? await (await import('./embedded-server.ts')).startEmbeddedServer(sharing.embedded)
      : undefined
  try {
    await shareThrough(sharing, embedded, run)
  } finally {
    await embedded?.stop()
  }
}

async function shareThrough(sharing: Sharing, embedded: ServerEnd | undefined, run: Run): Promise<void> {
  const servers = serverOption(sharing.destination, sharing.client.ca)
  const server = servers?.[0]?.url ?? `http://127.0.0.1:${embedded?.port}`
  // A server in this process ends with it, and so do all of its names.
  const state = embedded === undefined ? stateFolder(run.environment) : undefined
  const client = await createClient({
    ...sharing.client,
    ...(state !== undefined && { stateFolder: state }),
    reportRate: run.reportRate,
    token: '',
    server: servers ?? server,
    // A server in this process needs no proxy.
    ...(embedded !== undefined && { proxy: false }),
  })
  const totals = new Totals(sharing.countsConnections)
  const watches = sharing.targets.map(
    target =>
      new OriginWatch(target, isUp => run.output.event({ type: 'origin', origin: target.shortLabel, isUp })),
  )
  const checkOrigins = () => {
    for (const watch of watches) void watch.check()
  }
  const closed = deferred<Error | undefined>()
  onEnd(client, closed.resolve)
  let wire = 'streams'
  client.on('connected', event => {
    wire = event.wire
    run.output.event({ type: 'connected', url: event.url, subdomain: event.subdomain, wire })
  })
  const shared: Shared = {
    client,
    run,
    announce(what) {
      run.served()
      const roundTripMs = Math.round(100 * client.roundTripMs) / 100
      run.output.event({
        type: 'ready',
        ...what,
        wire,
        server,
        ...(roundTripMs > 0 && { roundTripMs }),
        isEmbedded: embedded !== undefined,
      })
      const [, name] = /^private:(.+)$/.exec(what.url) ?? []
      if (name === undefined) return
      const at = servers === undefined ? '' : ` --server ${servers[0]?.url ?? server}`
      const message = `To reach it from another machine, run there: localtunnels connect ${name}${at}`
      run.output.event({ type: 'notice', code: 'PRIVATE', message })
    },
  }
  report(client, { output: run.output, totals, inspect: sharing.client.inspect, originFailed: checkOrigins })
  sharing.listen?.(shared)

  tellNotices(sharing.destination, sharing.client.insecureToken ?? false, run.output)
  run.output.event({ type: 'connecting', server })
  const stopped = aborted(run.stop)
  try {
    await Promise.race([connectPatiently(() => sharing.connect(client), run), stopped])
    // Not earlier: if there is no server, only that should be reported.
    if (!run.stop.aborted) checkOrigins()
    if (!run.stop.aborted) await Promise.race([sharing.ready(shared), stopped])
    const end = await Promise.race([closed.promise, stopped])
    if (end !== undefined && !run.stop.aborted) throw end
    await drain(client, totals, run.output)
  } finally {
    for (const watch of watches) watch.stop()
    await client.disconnect()
  }
}

/** Takes no new requests, waits for those in progress, and prints the totals. */
export async function drain(client: ClientEnd | undefined, totals: Totals, output: Output): Promise<void> {
  output.event(totals.draining())
  await client?.close()
  output.event(totals.event())
}

export function pause(ms: number): Promise<void> {
  const { promise, resolve } = deferred()
  setTimeout(resolve, ms).unref()
  return promise
}
