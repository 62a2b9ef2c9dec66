// `localtunnels server`: runs a TunnelServer until a signal stops it, as flags and a configuration file say.

import { loadServerConfig } from '../../config/load.ts'
import { type AdminConfig, type ServerConfigOptions, serverOptions } from '../../config/server-config.ts'
import { deferred } from '../../deferred.ts'
import type { RedisRates } from '../../directories/redis-rates.ts'
import { ERRORS, TunnelError } from '../../errors.ts'
import { FileWatch } from '../../file-watch.ts'
import type { AccessLog } from '../../plugins/access-log.ts'
import type { AdminUpgrade } from '../../server/admin/options.ts'
import type { InboxOptions } from '../../server/inbox/options.ts'
import type { TunnelServerOptions } from '../../server/options.ts'
import { Changes } from '../changes.ts'
import { withPages } from '../documentation.ts'
import { createServer, type ServerEnd, withGuards } from '../ends.ts'
import type { Run } from '../run.ts'
import { passedDescriptors } from '../server/activation.ts'
import type { AdminListener } from '../server/admin-listener.ts'
import { type CertificateSource, openSource, refuseSource } from '../server/certificate-source.ts'
import type { ClusterSource } from '../server/cluster-source.ts'
import { notify } from '../server/notify.ts'
import { isOpenToOthers } from '../server/open-server.ts'
import type { LoadedPlugins } from '../server/plugin-files.ts'
import { Refusals } from '../server/refusals.ts'
import { type Succession, startSuccessor, successionOf } from '../server/successor.ts'
import type { TokenSource } from '../server/token-source.ts'
import { UsedLinksFile } from '../server/used-links.ts'
import { describe, moreEvent, responseEvent, visitorEvent } from '../sharing/report.ts'
import { Totals } from '../sharing/totals.ts'
import { aborted } from '../stop.ts'
import type { Place } from '../workers/workers.ts'
import type { WorkersAdmin } from '../workers/workers-admin.ts'
import { faultsError } from './config.ts'

export interface ServeSettings {
  /** The configuration file; `undefined`: flags alone. */
  readonly file: string | undefined
  /** They win over the file. */
  readonly flags: ServerConfigOptions
  /** Processes that share the ports; 1: this one. */
  readonly workers: number
}

export async function serve(settings: ServeSettings, run: Run): Promise<void> {
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
  const upgrade = new Upgrade(run, succession, place)
  const usedLinks = new UsedLinksFile(run.environment)
  const follower = file === undefined ? undefined : new Follower(file, flags, run)
  let source: CertificateSource | undefined
  let admin: AdminListener | undefined
  let log: AccessLog | undefined
  let tokens: TokenSource | undefined
  let cluster: ClusterEnd | undefined
  let sharedRates: RedisRates | undefined
  let inbox: InboxOptions | undefined
  try {
    const { open, ...given } = follower === undefined ? flags : await follower.read()
    source = await openSource(given, run)
    admin = await openAdmin(given, run, upgrade, place)
    log = await openLog(given)
    tokens = await openTokens(given, run)
    cluster = place === undefined ? await openCluster(given) : await openPlace(place)
    sharedRates = await openRates(given)
    inbox = await openInboxOf(given)
    const inherited = passedDescriptors(run.environment, process.pid)
    const areLocal = await areLocalSockets(inherited)
    const plugins = given.pluginFiles && (await loadPlugins(given.pluginFiles))
    const besides = {
      source,
      admin,
      log,
      plugins,
      tokens,
      cluster,
      sharedRates,
      usedLinks,
      inbox,
      areLocal,
      upgrade,
      place,
    }
    const wanted = { ...given, ...addedBy(besides, given), reportRate: run.reportRate }
    const options = { ...(source?.added(wanted) ?? wanted), ...(inherited.length > 0 && { inherited }) }
    // Options that cannot be used at all are reported first.
    const server = await createServer(options)
    if (!open) refuseOpen(options, areLocal)
    await runServer(server, { options, given }, besides, follower, run)
  } finally {
    follower?.stop()
    await source?.stop()
    admin?.close()
    await log?.close()
    tokens?.close()
    cluster?.close()
    sharedRates?.close()
    inbox?.store.close()
    await usedLinks.close()
  }
}

/** With the Redis of the cluster, for a server that shares rates. */
async function openRates({ rates = [], clusterOf }: ServerConfigOptions): Promise<RedisRates | undefined> {
  if (clusterOf === undefined || !rates.some(({ shared }) => shared)) return undefined
  const { RedisRates } = await import('../../directories/redis-rates.ts')
  const { url, prefix, ca } = clusterOf
  return RedisRates.open({ url, ...(prefix !== undefined && { prefix }), ...(ca !== undefined && { ca }) })
}

async function openInboxOf({ inboxOf }: ServerConfigOptions): Promise<InboxOptions | undefined> {
  if (inboxOf === undefined) return undefined
  const { openInbox } = await import('../../stores/open-inbox.ts')
  const { file, ...options } = inboxOf
  return { ...options, store: await openInbox(file) }
}

async function openLog({ accessLog: config }: ServerConfigOptions): Promise<AccessLog | undefined> {
  if (config === undefined) return undefined
  const { accessLog } = await import('../../plugins/access-log.ts')
  const { samplePercent, ...options } = config
  return accessLog({ ...options, ...(samplePercent !== undefined && { sample: samplePercent / 100 }) })
}

/** Its code is loaded for a process that was started as a worker. */
async function placeIn(
  environment: Run['environment'],
): Promise<{ readonly place: Place | undefined } | undefined> {
  if (environment.LOCALTUNNELS_WORKER === undefined) return undefined
  const { placeOf } = await import('../workers/workers.ts')
  return { place: placeOf(environment) }
}

async function openPlace(place: Place): Promise<ClusterEnd> {
  const { WorkerCluster } = await import('../workers/worker-cluster.ts')
  return WorkerCluster.open(place)
}

/** This process serves no visitors: it holds what the workers share. */
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
  const upgrade = new Upgrade(run, succession, undefined)
  const descriptors = await sharedSockets(given, passedDescriptors(run.environment, process.pid))
  const folder = await workersFolder(run)
  const { adminListener } = given
  const admin = adminListener && (await prepareAdmin(adminListener, folder, run))
  const workers = await Workers.start(count, descriptors, folder, run)
  try {
    admin?.listen(workers, upgrade)
  } catch (error) {
    await workers.stop()
    throw error
  }
  // They read the file themselves, when it changes or on SIGHUP.
  run.onHangup(() => workers.tell('SIGHUP'))
  const isReplaced = await upgrade.served({ descriptors })
  if (isReplaced) admin?.close()
  await (isReplaced ? workers.handOver() : workers.stop())
  await admin?.stop()
}

/** Its code is loaded for workers that have an admin listener. */
async function prepareAdmin(config: AdminConfig, folder: string, run: Run): Promise<WorkersAdmin> {
  const { WorkersAdmin } = await import('../workers/workers-admin.ts')
  return WorkersAdmin.prepare(config, folder, run)
}

/** Its code is loaded for a server that is not alone. */
async function openCluster({ clusterOf }: ServerConfigOptions): Promise<ClusterSource | undefined> {
  if (clusterOf === undefined) return undefined
  if (clusterOf.url === '')
    throw new TunnelError('OPTION_INVALID', '--peer-url is for a server with --cluster: give both.')
  const { ClusterSource } = await import('../server/cluster-source.ts')
  return ClusterSource.open(clusterOf)
}

/** Its code is loaded for a server that has an admin listener. */
async function openAdmin(
  { adminListener }: ServerConfigOptions,
  { environment }: Run,
  upgrade: AdminUpgrade,
  place: Place | undefined,
): Promise<AdminListener | undefined> {
  if (adminListener === undefined) return undefined
  const { AdminListener } = await import('../server/admin-listener.ts')
  return place === undefined
    ? AdminListener.open(adminListener, environment, upgrade)
    : AdminListener.openInside(adminListener, environment, place)
}

/** Its code is loaded for a server that has them. */
async function openTokens(
  { tokensFile: file }: ServerConfigOptions,
  run: Run,
): Promise<TokenSource | undefined> {
  if (file === undefined) return undefined
  const { TokenSource } = await import('../server/token-source.ts')
  const { tokensFile } = await import('./token.ts')
  return TokenSource.open(file === true ? tokensFile(run.environment) : file, error =>
    run.output.event({ type: 'error', ...describe(error) }),
  )
}

/** What these add to the options of the server, also to those of a reload. */
const addedBy = (
  { admin, log, plugins, tokens, cluster, sharedRates, usedLinks, inbox }: Besides,
  given: ServerConfigOptions,
): Pick<
  ServerConfigOptions,
  | 'admin'
  | 'cluster'
  | 'guards'
  | 'inbox'
  | 'middlewares'
  | 'observers'
  | 'sharedRates'
  | 'tokens'
  | 'usedLinks'
> => ({
  ...(usedLinks !== undefined && { usedLinks: usedLinks.open }),
  ...(sharedRates !== undefined && { sharedRates }),
  ...(tokens !== undefined && { tokens: tokens.tokens(given) }),
  ...(admin !== undefined && {
    admin: { ...admin.options, ...(tokens !== undefined && { tokens: tokens.editable }) },
  }),
  ...(cluster !== undefined && {
    cluster: { ...cluster.options, ...(tokens !== undefined && { tokens: tokens.editable }) },
  }),
  ...(inbox !== undefined && { inbox }),
  ...plugins,
  ...(log !== undefined && { observers: [...(plugins?.observers ?? []), log] }),
})

/** Its code is loaded for a server that was passed some. */
async function areLocalSockets(descriptors: readonly number[]): Promise<boolean> {
  if (descriptors.length === 0) return true
  const { inheritedSocket } = await import('../../sockets/inherited.ts')
  return descriptors.every(descriptor => inheritedSocket(descriptor).isLocal)
}

async function loadPlugins(paths: readonly string[]): Promise<LoadedPlugins> {
  return (await import('../server/plugin-files.ts')).loadPlugins(paths)
}

/** Where the server has its names from, if not from itself. */
export type ClusterEnd = Pick<ClusterSource, 'options' | 'check' | 'close'>

/** What a server has besides its options. */
interface Besides {
  readonly source: CertificateSource | undefined
  readonly admin: AdminListener | undefined
  readonly log: AccessLog | undefined
  readonly plugins: LoadedPlugins | undefined
  readonly tokens: TokenSource | undefined
  readonly cluster: ClusterEnd | undefined
  readonly sharedRates: RedisRates | undefined
  readonly usedLinks: UsedLinksFile | undefined
  readonly inbox: InboxOptions | undefined
  /** Only this machine reaches the sockets that were passed to it. */
  readonly areLocal: boolean
  readonly upgrade: Upgrade | undefined
  readonly place: Place | undefined
}

/** Throws `OPEN_SERVER` when everybody could have a tunnel. */
function refuseOpen(options: ServerConfigOptions, areLocal: boolean): void {
  if (isOpenToOthers(options, areLocal)) throw new TunnelError('OPEN_SERVER')
}

async function runServer(
  server: ServerEnd,
  { options, given }: { readonly options: TunnelServerOptions; readonly given: ServerConfigOptions },
  besides: Besides,
  follower: Follower | undefined,
  run: Run,
): Promise<void> {
  const { source, admin } = besides
  const { output } = run
  const totals = new Totals(true)
  let requests = 0
  // Fields are picked one by one: what is printed is a public format, not whatever the server's events hold.
  server.on('connection', ({ subdomain, wire, remoteAddress, token }) => {
    if (token !== undefined) besides.tokens?.used(token)
    output.event({
      type: 'connection',
      subdomain,
      wire,
      remoteAddress,
      ...(token !== undefined && { token }),
    })
  })
  server.on('disconnection', ({ subdomain, reason }) =>
    output.event({ type: 'disconnection', subdomain, reason }),
  )
  server.on('request', event => {
    const seen = { id: ++requests, ...event }
    totals.ended(seen)
    output.event({ ...responseEvent(seen), subdomain: event.subdomain })
  })
  server.on('requests', counts => {
    totals.unreported(counts)
    output.event(moreEvent(counts))
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
  await server.start()
  const domains = options.domains ?? ['localhost']
  const { url, port, tlsPort } = server
  if (besides.place === undefined || besides.place.number === 1)
    output.event({ type: 'listening', url, port, ...(tlsPort !== undefined && { tlsPort }), domains })
  if (admin !== undefined && server.adminUrl !== undefined) {
    admin.opened(server.adminUrl)
    const message = `The admin listener is at ${server.adminUrl}. On this machine: localtunnels admin tunnels`
    output.event({ type: 'notice', code: 'ADMIN', message })
  }
  // Before the first change: its own orders are under way then.
  await source?.start(server)
  follower?.follow(server, given, besides)
  besides.tokens?.follow(
    () => void (follower === undefined ? reloadTokens(server, given, besides, run) : follower.ask()),
  )
  const isReplaced = await besides.upgrade?.served(server)
  output.event({ type: 'draining', requests: 0 })
  await (isReplaced ? server.handOver() : server.stop())
  output.event(totals.event())
}

/** The program is replaced by itself, as it is installed now: SIGUSR2, or `localtunnels admin upgrade`. */
class Upgrade implements AdminUpgrade {
  readonly isSuccessor: boolean
  readonly #run: Run
  readonly #succession: Succession | undefined
  readonly #isWorker: boolean
  readonly #serving = deferred()
  readonly #replaced = deferred()
  #isReplaced = false
  #server: Pick<ServerEnd, 'descriptors'> | undefined
  #running: Promise<number> | undefined

  constructor(run: Run, succession: Succession | undefined, place: Place | undefined) {
    this.#isWorker = place !== undefined
    this.#run = run
    this.#succession = succession
    this.isSuccessor = succession !== undefined
    // At once: the signal would end a program that is still starting. It waits until this one serves.
    // A worker is replaced by who started it.
    run.onUpgrade(() => {
      if (!this.#isWorker) void this.run().catch(error => this.#tell(error))
    })
  }

  /** It serves. Resolves when it is to stop: `true` when another program serves in its place. */
  async served(server: Pick<ServerEnd, 'descriptors'>): Promise<boolean> {
    this.#server = server
    this.#serving.resolve()
    const { stop, environment } = this.#run
    // Before its word: the answer may come at once.
    const told = this.#isWorker ? (await import('../workers/workers.ts')).toldByParent(stop) : undefined
    if (this.#succession === undefined) notify('READY=1', environment)
    this.#succession?.serves()
    if (told !== undefined) return told
    return Promise.race([aborted(stop).then(() => false), this.#replaced.promise.then(() => true)])
  }

  run(): Promise<number> {
    // One at a time; and nothing replaces a program that has left.
    this.#running ??= this.#replace().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #replace(): Promise<number> {
    const { stop, environment, output } = this.#run
    await Promise.race([this.#serving.promise, aborted(stop)])
    const server = this.#server
    if (server === undefined || stop.aborted || this.#isReplaced)
      throw new TunnelError('UPGRADE_FAILED', 'This program is on its way out.')
    const pid = await startSuccessor(server.descriptors, environment, stop)
    this.#isReplaced = true
    notify(`MAINPID=${pid}`, environment)
    output.event({
      type: 'notice',
      code: 'UPGRADED',
      message: `Process ${pid} serves from now on; this one finishes what is under way.`,
    })
    this.#replaced.resolve()
    return pid
  }

  #tell(error: unknown): void {
    this.#run.output.event({ type: 'error', ...describe(error as Error) })
  }
}

/** Of a server without a file: everything else stays as it is. */
async function reloadTokens(
  server: ServerEnd,
  given: ServerConfigOptions,
  besides: Besides,
  { reportRate, output }: Run,
): Promise<void> {
  try {
    const wanted = { ...given, ...addedBy(besides, given), reportRate }
    await server.reload(await withGuards(besides.source?.added(wanted) ?? wanted))
    output.event({ type: 'notice', code: 'RELOADED', message: 'The tokens have changed.' })
  } catch (error) {
    output.event({ type: 'error', ...describe(error as Error) })
  }
}

/** Reads a server's file, and reads it again when it changes or SIGHUP asks for it. */
class Follower {
  readonly #file: string
  readonly #flags: ServerConfigOptions
  readonly #run: Run
  readonly #watch: FileWatch
  #server: ServerEnd | undefined
  /** As it was at the start. */
  #tokensFile: ServerConfigOptions['tokensFile']
  #besides: Besides = {
    source: undefined,
    admin: undefined,
    log: undefined,
    plugins: undefined,
    tokens: undefined,
    cluster: undefined,
    sharedRates: undefined,
    usedLinks: undefined,
    inbox: undefined,
    areLocal: true,
    upgrade: undefined,
    place: undefined,
  }
  readonly #changes: Changes

  constructor(file: string, flags: ServerConfigOptions, run: Run) {
    this.#file = file
    this.#flags = flags
    this.#run = run
    // A change rejects with nothing: whatever happens, the server goes on.
    this.#changes = new Changes(
      () => this.#change(),
      () => {},
    )
    // Before it is read: what is written from here on is noticed.
    this.#watch = new FileWatch(
      [file],
      () => this.#changes.ask(),
      error =>
        this.#notice('WATCH_FAILED', `Changes of ${file} will go unnoticed until SIGHUP: ${error.message}.`),
    )
    run.onHangup(() => this.#changes.ask())
  }

  /** Rejects with `CONFIG_INVALID` after every fault is printed. */
  async read(): Promise<ServerConfigOptions> {
    const { output, environment } = this.#run
    const { config, faults } = await loadServerConfig(this.#file, environment)
    for (const { at, message } of faults) output.event({ type: 'fault', file: this.#file, ...at, message })
    if (config === undefined) throw faultsError(this.#file, faults)
    return serverOptions(config, this.#flags)
  }

  /** Reads the file again. */
  ask(): void {
    this.#changes.ask()
  }

  /** From now on changes are made in this server. */
  follow(server: ServerEnd, { tokensFile }: ServerConfigOptions, besides: Besides): void {
    this.#server = server
    this.#tokensFile = tokensFile
    this.#besides = besides
    this.#changes.begin()
  }

  stop(): void {
    this.#watch.stop()
  }

  async #change(): Promise<void> {
    const server = this.#server
    if (server === undefined || this.#run.stop.aborted) return
    try {
      const { open, ...given } = await this.read()
      const wanted = { ...given, ...addedBy(this.#besides, given), reportRate: this.#run.reportRate }
      const { source, admin, cluster } = this.#besides
      admin?.check(given.adminListener)
      cluster?.check(given.clusterOf)
      if (cluster === undefined && given.clusterOf !== undefined)
        throw new TunnelError('OPTION_INVALID', 'cluster begins with the server: start it again for that.')
      if (admin === undefined && given.adminListener !== undefined)
        throw new TunnelError('OPTION_INVALID', 'admin begins with the server: start it again for that.')
      if (given.tokensFile !== this.#tokensFile)
        throw new TunnelError(
          'OPTION_INVALID',
          'tokens-db cannot change while the server runs: start it again for that.',
        )
      if (source === undefined) refuseSource(wanted)
      const options = source?.added(wanted) ?? wanted
      if (!open) refuseOpen(options, this.#besides.areLocal)
      await server.reload(await withGuards({ ...options, reportRate: this.#run.reportRate }))
      this.#notice('RELOADED', `${this.#file} is in force.`)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      this.#notice('CONFIG_KEPT', `${withPages(message)} The server goes on as it was.`)
    }
  }

  #notice(code: string, message: string): void {
    this.#run.output.event({ type: 'notice', code, message })
  }
}
