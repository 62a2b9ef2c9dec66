// `localtunnels server`: runs a TunnelServer with the options of flags and a configuration file, until a signal stops it.

import { normalName } from '../../certificates/names.ts'
import type { AdminConfig, ServerConfigOptions } from '../../config/server-config.ts'
import { createServer, needBun, type ServerEnd, withGuards } from '../ends.ts'
import type { Run } from '../run.ts'
import { passedDescriptors } from '../server/activation.ts'
import { Follower } from '../server/follower.ts'
import { ServerParts } from '../server/parts.ts'
import { reportEvents } from '../server/reporting.ts'
import { type Succession, successionOf } from '../server/successor.ts'
import { Upgrade } from '../server/upgrade.ts'
import { describe } from '../sharing/report.ts'
import type { Place } from '../workers/workers.ts'
import type { WorkersAdmin } from '../workers/workers-admin.ts'

export interface ServeSettings {
  /** The configuration file. `undefined` if there are only flags. */
  readonly file: string | undefined
  /** The flags, which win over the file. */
  readonly flags: ServerConfigOptions
  /** The number of processes that share the ports; 1 means only this one. */
  readonly workers: number
}

export async function serve(settings: ServeSettings, run: Run): Promise<void> {
  needBun()
  const succession = successionOf(run.environment)
  try {
    const place = (await placeIn(run.environment))?.place
    if (settings.workers > 1 && place === undefined) await serveByWorkers(settings, succession, run)
    else await serveWith(settings, place, succession, run)
  } catch (error) {
    succession?.failed(error)
    throw error
  }
}

async function serveWith(
  { file, flags }: ServeSettings,
  place: Place | undefined,
  succession: Succession | undefined,
  run: Run,
): Promise<void> {
  const upgrade = new Upgrade(run, succession, place !== undefined)
  const follower = file === undefined ? undefined : new Follower(file, flags, run)
  const parts = new ServerParts(run)
  try {
    const { open, ...given } = follower === undefined ? flags : await follower.read()
    const inherited = passedDescriptors(run.environment, process.pid)
    await parts.open(given, { run, upgrade, place, inherited })
    const options = { ...parts.options(given), ...(inherited.length > 0 && { inherited }) }
    // Unusable options are reported first.
    const server = await createServer(options)
    if (!open) parts.refuseOpen(options)
    const reload = () =>
      void (follower === undefined ? reloadTokens(server, given, parts, run) : follower.ask())
    const totals = reportEvents(server, run.output, parts.tokens)
    await parts.reach(run)
    if (run.stop.aborted) return
    await server.start()
    run.served()
    if (run.terminal !== undefined && place === undefined) (await import('./inspect-keys.ts')).offerKeys(run)
    reportStart(server, options, parts, place, run)
    if (parts.tokens?.editable.list().length === 0 && (given.tokens ?? []).length === 0)
      noticeNoTokens(given, run)
    // Before the first change, because orders of certificates begin here.
    await parts.start(server)
    follower?.follow(server, parts)
    parts.tokens?.follow(reload)
    const isReplaced = await upgrade.served(server)
    if (place === undefined) run.output.event({ type: 'draining', requests: 0 })
    await (isReplaced ? server.handOver() : server.stop())
    // The process that started the workers prints the totals of all.
    if (place === undefined) run.output.event(totals.event())
    else (await import('../workers/workers.ts')).sayTotals(totals.event())
  } finally {
    follower?.stop()
    await parts.close()
  }
}

function noticeNoTokens({ tokensFile }: ServerConfigOptions, { output }: Run): void {
  const file = typeof tokensFile === 'string' ? ` --tokens-db ${tokensFile}` : ''
  const message = `There is no token, so no client can connect. As this user run: localtunnels token add <name>${file}`
  output.event({ type: 'notice', code: 'NO_TOKENS', message })
}

/** Reports the start. Of several workers, only the first reports it. */
function reportStart(
  server: ServerEnd,
  options: ServerConfigOptions,
  { admin }: ServerParts,
  place: Place | undefined,
  { output }: Run,
): void {
  const { domains = ['localhost'] } = options
  const { url, port, tlsPort, adminUrl } = server
  const listening = { url, port, ...(tlsPort !== undefined && { tlsPort }), domains: domains.map(normalName) }
  if (place === undefined || place.number === 1) output.event({ type: 'listening', ...listening })
  if (admin === undefined || adminUrl === undefined) return
  admin.opened(adminUrl, options)
  const message = `The admin listener is at ${adminUrl}. On this machine: localtunnels admin open`
  output.event({ type: 'notice', code: 'ADMIN', message })
}

/** Reloads the tokens of a server without a file. Everything else stays. */
async function reloadTokens(
  server: ServerEnd,
  given: ServerConfigOptions,
  parts: ServerParts,
  { output }: Run,
): Promise<void> {
  try {
    await server.reload(await withGuards(parts.options(given)))
    output.event({ type: 'notice', code: 'RELOADED', message: 'The tokens have changed.' })
  } catch (error) {
    output.event({ type: 'error', ...describe(error as Error) })
  }
}

/** Serves with worker processes. This process serves no visitors: it holds what the workers share. */
async function serveByWorkers(
  { file, flags, workers: count }: ServeSettings,
  succession: Succession | undefined,
  run: Run,
): Promise<void> {
  const { Workers, sharedSockets, refuseUnshared, workersFolder } = await import('../workers/workers.ts')
  const follower = file === undefined ? undefined : new Follower(file, flags, run)
  const given = follower === undefined ? flags : await follower.read()
  follower?.stop()
  refuseUnshared(given)
  const upgrade = new Upgrade(run, succession, false)
  const descriptors = await sharedSockets(given, passedDescriptors(run.environment, process.pid))
  const folder = await workersFolder(run)
  const { adminListener } = given
  const admin = adminListener && (await prepareAdmin(adminListener, folder, run))
  const workers = await Workers.start(count, descriptors, folder, run)
  run.served()
  try {
    admin?.listen(workers, upgrade, given)
  } catch (error) {
    await workers.stop()
    throw error
  }
  // The workers read the file themselves, when it changes or on SIGHUP.
  run.onHangup(() => workers.tell('SIGHUP'))
  const isReplaced = await upgrade.served({ descriptors })
  run.output.event({ type: 'draining', requests: 0 })
  if (isReplaced) admin?.close()
  await (isReplaced ? workers.handOver() : workers.stop())
  await admin?.stop()
  run.output.event(workers.totals())
}

/** Prepares the admin listener. Its code is loaded only if there is one. */
async function prepareAdmin(config: AdminConfig, folder: string, run: Run): Promise<WorkersAdmin> {
  const { WorkersAdmin } = await import('../workers/workers-admin.ts')
  return WorkersAdmin.prepare(config, folder, run)
}

/** Returns the place of a worker. The code is loaded only in workers. */
async function placeIn(
  environment: Run['environment'],
): Promise<{ readonly place: Place | undefined } | undefined> {
  if (environment.LOCALTUNNELS_WORKER === undefined) return undefined
  const { placeOf } = await import('../workers/workers.ts')
  return { place: placeOf(environment) }
}
