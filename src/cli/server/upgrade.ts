// Replaces the program by the installed version, after SIGUSR2 or `localtunnels admin upgrade`.

import { deferred } from '../../deferred.ts'
import { TunnelError } from '../../errors.ts'
import type { AdminUpgrade } from '../../server/settings/part-options.ts'
import type { ServerEnd } from '../ends.ts'
import { notify } from '../notify.ts'
import type { Run } from '../run.ts'
import { describe } from '../sharing/report.ts'
import { aborted } from '../stop.ts'
import { type Succession, startSuccessor } from './successor.ts'

export class Upgrade implements AdminUpgrade {
  readonly isSuccessor: boolean
  readonly #run: Run
  readonly #succession: Succession | undefined
  readonly #isWorker: boolean
  readonly #serving = deferred()
  readonly #replaced = deferred()
  #isReplaced = false
  #server: Pick<ServerEnd, 'descriptors'> | undefined
  #running: Promise<number> | undefined

  constructor(run: Run, succession: Succession | undefined, isWorker: boolean) {
    this.#isWorker = isWorker
    this.#run = run
    this.#succession = succession
    this.isSuccessor = succession !== undefined
    // Set at once, because the signal would end a program that is still starting. The upgrade waits until this one
    // serves. The process that started a worker replaces it.
    run.onUpgrade(() => {
      if (!this.#isWorker) void this.run().catch(error => this.#tell(error))
    })
  }

  /** Called when the server serves. Resolves when it must stop, with `true` if another program serves in its place. */
  async served(server: Pick<ServerEnd, 'descriptors'> & { readonly url?: string }): Promise<boolean> {
    this.#server = server
    this.#serving.resolve()
    const { stop, environment } = this.#run
    // Before the message, because the response may come at once.
    const told = this.#isWorker ? (await import('../workers/workers.ts')).toldByParent(stop) : undefined
    const status = server.url === undefined ? '' : `\nSTATUS=Serves ${server.url}`
    if (this.#succession === undefined) notify(`READY=1${status}`, environment)
    this.#succession?.serves()
    if (told !== undefined) return told
    const isReplaced = await Promise.race([
      aborted(stop).then(() => false),
      this.#replaced.promise.then(() => true),
    ])
    if (!isReplaced) notify('STOPPING=1', environment)
    return isReplaced
  }

  run(): Promise<number> {
    // One at a time, and not after this program has begun to stop.
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
      throw new TunnelError('UPGRADE_FAILED', 'This program is stopping.')
    const pid = await startSuccessor(server.descriptors, environment, stop)
    this.#isReplaced = true
    notify(`MAINPID=${pid}`, environment)
    output.event({
      type: 'notice',
      code: 'UPGRADED',
      message: `Process ${pid} serves from now on; this one finishes its open requests.`,
    })
    this.#replaced.resolve()
    return pid
  }

  #tell(error: unknown): void {
    this.#run.output.event({ type: 'error', ...describe(error as Error) })
  }
}
