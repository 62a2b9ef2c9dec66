// The parts of `localtunnels server` in addition to the options of its file and flags: stores, logs, the admin
// listener, the cluster. The code of each is loaded only if the server has it.

import type { ServerConfigOptions } from '../../config/server-config.ts'
import type { CountryFile } from '../../countries.ts'
import type { RedisRates } from '../../directories/redis-rates.ts'
import { optionInvalid } from '../../errors.ts'
import type { AccessLog } from '../../plugins/access-log.ts'
import { openServerFault } from '../../server/settings/open-server.ts'
import type { AdminUpgrade, InboxOptions } from '../../server/settings/part-options.ts'
import type { ServerEnd } from '../ends.ts'
import type { Run } from '../run.ts'
import { describe } from '../sharing/report.ts'
import type { Place } from '../workers/workers.ts'
import type { AdminListener } from './admin-listener.ts'
import { type CertificateSource, openSource, refuseSource } from './certificate-source.ts'
import type { ClusterSource } from './cluster-source.ts'
import type { LoadedPlugins } from './plugin-files.ts'
import type { TokenSource } from './token-source.ts'
import { UsedLinksFile } from './used-links.ts'

/** The cluster, if the server has one. */
export type ClusterEnd = Pick<ClusterSource, 'options' | 'check' | 'close'> &
  Partial<Pick<ClusterSource, 'reach'>>

export interface PartsPlace {
  readonly run: Run
  readonly upgrade: AdminUpgrade
  readonly place: Place | undefined
  /** The descriptors of inherited sockets. */
  readonly inherited: readonly number[]
}

type Added = Pick<
  ServerConfigOptions,
  | 'admin'
  | 'cluster'
  | 'countries'
  | 'guards'
  | 'inbox'
  | 'middlewares'
  | 'observers'
  | 'sharedRates'
  | 'tokens'
  | 'usedLinks'
>

export class ServerParts {
  readonly #reportRate: number
  readonly #usedLinks: UsedLinksFile
  #tokensFile: ServerConfigOptions['tokensFile']
  #countriesFile: string | undefined
  #countries: CountryFile | undefined
  #source: CertificateSource | undefined
  #admin: AdminListener | undefined
  #log: AccessLog | undefined
  #tokens: TokenSource | undefined
  #cluster: ClusterEnd | undefined
  #sharedRates: RedisRates | undefined
  #inbox: InboxOptions | undefined
  #plugins: LoadedPlugins | undefined
  /** Whether only this machine reaches the inherited sockets. */
  #areLocal = true

  constructor(run: Run) {
    this.#reportRate = run.reportRate
    this.#usedLinks = new UsedLinksFile(run.environment)
  }

  /** Opens the parts that the options ask for. If it rejects, `close()` closes those that are open. */
  async open(given: ServerConfigOptions, { run, upgrade, place, inherited }: PartsPlace): Promise<void> {
    this.#tokensFile = given.tokensFile
    this.#countriesFile = given.countriesFile
    this.#source = await openSource(given, run)
    this.#admin = await openAdmin(given, run, upgrade, place)
    this.#log = await openLog(given, place)
    this.#tokens = await openTokens(given, run)
    this.#cluster = place === undefined ? await openCluster(given) : await openPlace(place)
    this.#sharedRates = await openRates(given)
    this.#inbox = await openInboxOf(given)
    this.#countries = await openCountriesOf(given, run)
    this.#areLocal = await areLocalSockets(inherited)
    this.#plugins = given.pluginFiles && (await loadPlugins(given.pluginFiles))
  }

  get admin(): AdminListener | undefined {
    return this.#admin
  }

  get tokens(): TokenSource | undefined {
    return this.#tokens
  }

  options(given: ServerConfigOptions): ServerConfigOptions {
    const wanted = { ...given, ...this.#added(given), reportRate: this.#reportRate }
    return this.#source?.added(wanted) ?? wanted
  }

  /** Throws `OPEN_SERVER` if every stranger could have a tunnel. */
  refuseOpen(options: ServerConfigOptions): void {
    const { tokens = [], jwtTokens = [] } = options
    const fault = tokens.length + jwtTokens.length > 0 ? undefined : openServerFault(options, this.#areLocal)
    if (fault !== undefined) throw fault
  }

  /** Throws `OPTION_INVALID` if a reload would open, close or move a part. */
  checkReload(given: ServerConfigOptions): void {
    this.#admin?.check(given.adminListener)
    this.#cluster?.check(given.clusterOf)
    if (this.#cluster === undefined && given.clusterOf !== undefined)
      throw optionInvalid('cluster begins with the server: start it again for that.')
    if (this.#admin === undefined && given.adminListener !== undefined)
      throw optionInvalid('admin begins with the server: start it again for that.')
    if (given.tokensFile !== this.#tokensFile)
      throw optionInvalid('tokens-db cannot change while the server runs: start it again for that.')
    if (given.countriesFile !== this.#countriesFile)
      throw optionInvalid('countries cannot change while the server runs: start it again for that.')
    if (this.#source === undefined) refuseSource(given)
  }

  /** Resolves once everything that the server needs for its start is there, or when it must stop. */
  async reach(run: Run): Promise<void> {
    await this.#cluster?.reach?.(run)
  }

  /** Begins tasks that need a listening server, such as certificate orders. */
  async start(server: ServerEnd): Promise<void> {
    await this.#source?.start(server)
  }

  async close(): Promise<void> {
    await this.#source?.stop()
    this.#admin?.close()
    await this.#log?.close()
    this.#tokens?.close()
    this.#cluster?.close()
    this.#sharedRates?.close()
    this.#inbox?.store.close()
    this.#countries?.close()
    await this.#usedLinks.close()
  }

  #added(given: ServerConfigOptions): Added {
    const tokens = this.#tokens
    const editable = tokens !== undefined && { tokens: tokens.editable }
    return {
      usedLinks: this.#usedLinks.open,
      ...(this.#countries !== undefined && { countries: this.#countries }),
      ...(this.#sharedRates !== undefined && { sharedRates: this.#sharedRates }),
      ...(tokens !== undefined && { tokens: tokens.tokens(given) }),
      ...(this.#admin !== undefined && { admin: { ...this.#admin.options, ...editable } }),
      ...(this.#cluster !== undefined && { cluster: { ...this.#cluster.options, ...editable } }),
      ...(this.#inbox !== undefined && { inbox: this.#inbox }),
      ...this.#plugins,
      ...(this.#log !== undefined && { observers: [...(this.#plugins?.observers ?? []), this.#log] }),
    }
  }
}

async function openCluster({ clusterOf }: ServerConfigOptions): Promise<ClusterSource | undefined> {
  if (clusterOf === undefined) return undefined
  if (clusterOf.url === '') throw optionInvalid('--peer-url is for a server with --cluster: give both.')
  const { ClusterSource } = await import('./cluster-source.ts')
  return ClusterSource.open(clusterOf)
}

async function openAdmin(
  { adminListener }: ServerConfigOptions,
  { environment }: Run,
  upgrade: AdminUpgrade,
  place: Place | undefined,
): Promise<AdminListener | undefined> {
  if (adminListener === undefined) return undefined
  const { AdminListener } = await import('./admin-listener.ts')
  return place === undefined
    ? AdminListener.open(adminListener, environment, upgrade)
    : AdminListener.openInside(adminListener, environment, place)
}

async function openTokens(
  { tokensFile: file }: ServerConfigOptions,
  run: Run,
): Promise<TokenSource | undefined> {
  if (file === undefined) return undefined
  const { TokenSource } = await import('./token-source.ts')
  const { tokensFile } = await import('../commands/token.ts')
  return TokenSource.open(file === true ? tokensFile(run.environment) : file, error =>
    run.output.event({ type: 'error', ...describe(error) }),
  )
}

async function openRates({ rates = [], clusterOf }: ServerConfigOptions): Promise<RedisRates | undefined> {
  if (clusterOf === undefined || !rates.some(({ shared }) => shared)) return undefined
  const { RedisRates } = await import('../../directories/redis-rates.ts')
  const { url, prefix, ca } = clusterOf
  return RedisRates.open({ url, ...(prefix !== undefined && { prefix }), ...(ca !== undefined && { ca }) })
}

async function openInboxOf({ inboxOf }: ServerConfigOptions): Promise<InboxOptions | undefined> {
  if (inboxOf === undefined) return undefined
  const { openInbox } = await import('../../stores/open.ts')
  const { file, ...options } = inboxOf
  return { ...options, store: await openInbox(file) }
}

async function openCountriesOf(
  { countriesFile: file }: ServerConfigOptions,
  { output }: Run,
): Promise<CountryFile | undefined> {
  if (file === undefined) return undefined
  const { openCountries } = await import('../../countries.ts')
  return openCountries(file, error => output.event({ type: 'error', ...describe(error) }))
}

async function openLog(
  { accessLog: config }: ServerConfigOptions,
  place: Place | undefined,
): Promise<AccessLog | undefined> {
  if (config === undefined) return undefined
  const { accessLog } = await import('../../plugins/access-log.ts')
  const { samplePercent, ...options } = config
  const worker = place && { worker: place.number }
  return accessLog({
    ...options,
    ...worker,
    ...(samplePercent !== undefined && { sample: samplePercent / 100 }),
  })
}

async function openPlace(place: Place): Promise<ClusterEnd> {
  const { WorkerCluster } = await import('../workers/worker-cluster.ts')
  return WorkerCluster.open(place)
}

async function areLocalSockets(descriptors: readonly number[]): Promise<boolean> {
  if (descriptors.length === 0) return true
  const { inheritedSocket } = await import('../../sockets/inherited.ts')
  return descriptors.every(descriptor => inheritedSocket(descriptor).isLocal)
}

async function loadPlugins(paths: readonly string[]): Promise<LoadedPlugins> {
  return (await import('./plugin-files.ts')).loadPlugins(paths)
}
