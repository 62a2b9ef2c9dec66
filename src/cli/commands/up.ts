// `localtunnels up`: the services of a configuration file on one connection, updated when the file changes.

import { isDeepStrictEqual } from 'node:util'
import { pauseBefore } from '../../client/carriers/tries.ts'
import type { ClientConfig } from '../../config/client-config.ts'
import { loadClientConfig } from '../../config/load.ts'
import { deferred } from '../../deferred.ts'
import { ERRORS, TunnelError } from '../../errors.ts'
import { FileWatch } from '../../file-watch.ts'
import { stateFolder } from '../../state-folder.ts'
import { Changes } from '../changes.ts'
import { withPages } from '../documentation.ts'
import { type ClientEnd, createClient, reachServer, type ServerEnd } from '../ends.ts'
import { EXIT, exitCodeOf } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import type { Run } from '../run.ts'
import {
  destinationOfFile,
  type FileSettings,
  serverOption,
  tellNotices,
  trustsServer,
} from '../settings/destination.ts'
import { Logins } from '../settings/logins.ts'
import { startEmbeddedServer } from '../sharing/embedded-server.ts'
import { connectPatiently, MAX_PAUSE_MS, onEnd, passes, pauseUntil } from '../sharing/patience.ts'
import { tellReach } from '../sharing/reach.ts'
import { type Reporting, report } from '../sharing/report.ts'
import { type Refusal, Services } from '../sharing/services.ts'
import { drain } from '../sharing/sharing.ts'
import { Totals } from '../sharing/totals.ts'
import { aborted } from '../stop.ts'
import { faultsError, findConfig } from './config.ts'

export interface UpSettings {
  /** The file. `undefined`: the one in the current folder. */
  readonly file: string | undefined
  /** Whether to use a server in this process, even if the file names one. */
  readonly isLocal: boolean
  /** Whether a lost connection ends the command, even if the file says otherwise. */
  readonly endsWhenLost: boolean
}

/**
 * Runs the services. Resolves after a clean end. Rejects if the file has faults at the start, the server refuses
 * every service, or it refuses the client for good.
 */
export async function up({ file, isLocal, endsWhenLost }: UpSettings, run: Run): Promise<void> {
  const path = file ?? findConfig('.')
  const lost = deferred<never>()
  const up = new Up({ path, isNamed: file !== undefined, isLocal, endsWhenLost }, run, lost.reject)
  // Before the file is read, so that all later changes are noticed.
  const watch = new FileWatch(
    [path],
    () => up.changed(),
    error => notice(run.output, 'WATCH_FAILED', `Changes of ${path} will go unnoticed: ${error.message}.`),
  )
  const stopped = aborted(run.stop)
  try {
    await Promise.race([up.begin(), stopped])
    await Promise.race([lost.promise, stopped])
    await up.drain()
  } finally {
    watch.stop()
    await up.end()
  }
}

/** The file, and how it was chosen. */
type Source = Pick<FileSettings, 'path' | 'isNamed' | 'isLocal'> & Pick<UpSettings, 'endsWhenLost'>

class Up {
  readonly #source: Source
  readonly #run: Run
  /** Called when the client was closed for good. */
  readonly #lost: (error: unknown) => void
  readonly #totals = new Totals()
  readonly #changes: Changes
  #config: ClientConfig | undefined
  #line: Line | undefined
  #hasKeys = false
  /** The services that were refused for a temporary reason while others run, and the number of attempts. */
  #away: ReadonlySet<string> = new Set()
  #tries = 0
  #isPausing = false

  constructor(source: Source, run: Run, lost: (error: unknown) => void) {
    this.#source = source
    this.#run = run
    this.#lost = lost
    this.#changes = new Changes(superseded => this.#change(superseded), lost)
  }

  /** Starts the services. Rejects if the server refuses every one for a reason that is not temporary. */
  async begin(): Promise<void> {
    const config = await read(this.#source, this.#run)
    await connectPatiently(() => this.#begin(config), this.#run)
    if (!this.#run.stop.aborted) this.#changes.begin()
  }

  async #begin(config: ClientConfig): Promise<void> {
    const refusals = await this.#apply(config)
    const [first, ...others] = refusals
    if (first !== undefined && this.#line?.services.size === 0) {
      // If all share a refusal, such as a missing server, the caller prints it once.
      this.#printRefusals(others.filter(({ error }) => error !== first.error))
      throw named(first)
    }
    this.#tell(refusals)
    if (!this.#run.stop.aborted) this.#configured(refusals)
  }

  changed(): void {
    this.#changes.ask()
  }

  drain(): Promise<void> {
    return drain(this.#line?.client, this.#totals, this.#run.output)
  }

  async end(): Promise<void> {
    await this.#line?.close()
  }

  async #change(superseded: AbortSignal): Promise<void> {
    const { output, stop } = this.#run
    if (stop.aborted) return
    const before = this.#config
    try {
      let refusals = await this.#apply(await read(this.#source, this.#run), superseded)
      const [first] = refusals
      const isUnreachable = this.#line?.services.size === 0 && !this.#line.client.isConnected()
      if (first !== undefined && isUnreachable && before !== undefined && !stop.aborted) {
        this.#printRefusals([first])
        notice(output, 'CONFIG_KEPT', `${this.#source.path}: the previous services keep running.`)
        refusals = await this.#apply(before, superseded)
      } else if (!this.#tell(refusals)) return
      this.#configured(refusals)
    } catch (error) {
      if (!(error instanceof TunnelError)) throw error
      notice(output, 'CONFIG_KEPT', `${withPages(error.message)} The previous services keep running.`)
    }
  }

  async #apply(config: ClientConfig, superseded?: AbortSignal): Promise<readonly Refusal[]> {
    const isSameLine = isDeepStrictEqual(this.#config?.connection, config.connection)
    if (this.#line === undefined || !isSameLine) {
      // Before anything ends: reports unusable options, and dials another server.
      const line = await Line.open(config, {
        source: this.#source,
        run: this.#run,
        totals: this.#totals,
        lost: this.#lost,
        refused: refusal => {
          if (this.#tell([refusal])) this.#printRefusals([refusal])
        },
        mustReach: this.#line !== undefined,
      })
      await this.#line?.close()
      this.#line = line
    }
    this.#config = config
    return this.#line.services.apply(config.services, superseded)
  }

  #printRefusals(refusals: readonly Refusal[]): void {
    for (const { service, error } of refusals) {
      this.#run.output.event({ type: 'error', code: error.code, message: error.message, service })
    }
  }

  /** Requests services again that were refused for a temporary reason. Returns whether this is news. */
  #tell(refusals: readonly Refusal[]): boolean {
    const isPassing = refusals.some(({ error }) => passes(error))
    const isKnown = ({ service, error }: Refusal) => passes(error) && this.#away.has(service)
    const isNews = refusals.length === 0 || !refusals.every(isKnown)
    if (!isPassing) this.#tries = 0
    this.#away = new Set(refusals.filter(({ error }) => passes(error)).map(({ service }) => service))
    if (isPassing) void this.#askAgain()
    return isNews
  }

  async #askAgain(): Promise<void> {
    if (this.#isPausing) return
    this.#isPausing = true
    await pauseUntil(this.#run.stop, pauseBefore(++this.#tries + 1, MAX_PAUSE_MS))
    this.#isPausing = false
    this.#changes.ask()
  }

  /** Prints the running services, and below them the refused ones. */
  #configured(refusals: readonly Refusal[]): void {
    this.#run.served()
    const services = this.#line?.services.size ?? 0
    const inspector = this.#line?.client.inspectorUrl
    const refused = refusals.length
    const more = { ...(refused > 0 && { refused }), ...(inspector !== undefined && { inspector }) }
    this.#run.output.event({ type: 'configured', file: this.#source.path, services, ...more })
    this.#printRefusals(refusals)
    if (!this.#hasKeys) void this.#offerKeys()
  }

  /** Offers keys. When one is pressed, it uses the current client. */
  async #offerKeys(): Promise<void> {
    this.#hasKeys = true
    const { offerKeys } = await import('./inspect-keys.ts')
    offerKeys(this.#run, { url: () => this.#line?.services.url, page: () => this.#line?.client.inspectorUrl })
  }
}

/** The functions that a line calls for its reports. */
interface LineOwner {
  readonly source: Source
  readonly run: Run
  readonly totals: Totals
  /** Called when the client was closed for good. */
  readonly lost: (error: unknown) => void
  /** Called when a service was refused after a newer file replaced this one. */
  readonly refused: (refusal: Refusal) => void
  /** Whether running services will be released for this line, so that the server must be reachable. */
  readonly mustReach: boolean
}

/** A client with its services, and the server in this process if none is named. */
class Line {
  readonly client: ClientEnd
  readonly services: Services
  readonly #embedded: ServerEnd | undefined
  #isClosed = false

  private constructor(client: ClientEnd, services: Services, embedded: ServerEnd | undefined) {
    this.client = client
    this.services = services
    this.#embedded = embedded
  }

  static async open(config: ClientConfig, owner: LineOwner): Promise<Line> {
    const { connection } = config
    const { source, run, totals, lost, refused, mustReach } = owner
    const destination = destinationOfFile(
      { connection, ...source },
      run.environment,
      () => new Logins(run.environment),
    )
    const servers = serverOption(destination, connection.ca)
    const embedded = servers === undefined ? await startEmbeddedServer() : undefined
    const server = servers?.[0]?.url ?? `http://127.0.0.1:${embedded?.port}`
    if (embedded !== undefined) {
      notice(
        run.output,
        'LOCAL_ONLY',
        'Only this machine can open these. To share them, name a server in the file.',
      )
    }
    tellNotices(destination, connection.insecureToken ?? false, run.output)
    run.output.event({ type: 'connecting', server })
    const state = embedded === undefined ? stateFolder(run.environment) : undefined
    try {
      const options = {
        ...connection,
        ...(source.endsWhenLost && { reconnect: false }),
        ...(state !== undefined && { stateFolder: state }),
        reportRate: run.reportRate,
        token: '',
        server: servers ?? server,
        // A server in this process needs no proxy.
        ...(embedded !== undefined && { proxy: false as const }),
      }
      if (mustReach && embedded === undefined) await reachServer(options)
      const client = await createClient(options)
      const line = new Line(client, new Services(client, run.output, refused), embedded)
      line.#report(run.output, totals, connection.inspect, lost)
      return line
    } catch (error) {
      await embedded?.stop()
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.services.stop()
    await this.client.disconnect()
    await this.#embedded?.stop()
  }

  #report(
    output: Output,
    totals: Totals,
    inspect: Reporting['inspect'],
    lost: (error: unknown) => void,
  ): void {
    const { client, services } = this
    report(client, {
      output,
      totals,
      inspect,
      serviceOf: tunnel => services.serviceOf(tunnel),
      originFailed: tunnel => services.check(services.serviceOf(tunnel)),
    })
    let isAgain = false
    client.on('connected', ({ url, subdomain, wire }) => {
      if (isAgain) output.event({ type: 'connected', url, subdomain, wire })
      isAgain = true
      services.sync()
    })
    client.on('registered', () => services.sync())
    client.on('reach', reach => tellReach(reach, output))
    onEnd(client, error => {
      if (error !== undefined && !this.#isClosed) lost(error)
    })
  }
}

/** Returns the error with the name of its service, unless it concerns all services, such as a missing server. */
function named({ service, error }: Refusal): TunnelError {
  if (exitCodeOf(error.code) === EXIT.unreachable) return error
  const { action } = ERRORS[error.code]
  const what = error.message.endsWith(action) ? error.message.slice(0, -action.length).trim() : error.message
  return new TunnelError(error.code, `${service}: ${what}`, { cause: error })
}

/** Reads the file. Rejects with `CONFIG_INVALID` after every fault was printed. */
async function read({ path, isNamed }: Source, { output, environment }: Run): Promise<ClientConfig> {
  const logins = () => new Logins(environment)
  const found = isNamed ? undefined : (server: string) => trustsServer(server, environment, logins)
  const { config, faults } = await loadClientConfig(path, environment, found)
  for (const { at, message } of faults) output.event({ type: 'configError', file: path, ...at, message })
  if (config === undefined) throw faultsError(path, faults)
  return config
}

function notice(output: Output, code: string, message: string): void {
  output.event({ type: 'notice', code, message })
}
