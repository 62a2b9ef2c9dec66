// Reads a server's file, and reads it again when it changes or on SIGHUP.

import { loadServerConfig } from '../../config/load.ts'
import { type ServerConfigOptions, serverOptions } from '../../config/server-config.ts'
import { messageOf } from '../../errors.ts'
import { FileWatch } from '../../file-watch.ts'
import { Changes } from '../changes.ts'
import { faultsError } from '../commands/config.ts'
import { withPages } from '../documentation.ts'
import { type ServerEnd, withGuards } from '../ends.ts'
import type { Run } from '../run.ts'
import type { ServerParts } from './parts.ts'

export class Follower {
  readonly #file: string
  readonly #flags: ServerConfigOptions
  readonly #run: Run
  readonly #watch: FileWatch
  #server: ServerEnd | undefined
  #parts: ServerParts | undefined
  readonly #changes: Changes

  constructor(file: string, flags: ServerConfigOptions, run: Run) {
    this.#file = file
    this.#flags = flags
    this.#run = run
    // A failed change rejects nothing: the server continues in any case.
    this.#changes = new Changes(
      () => this.#change(),
      () => {},
    )
    // Before the file is read, so that all later changes are noticed.
    this.#watch = new FileWatch(
      [file],
      () => this.#changes.ask(),
      error =>
        this.#notice('WATCH_FAILED', `Changes of ${file} will go unnoticed until SIGHUP: ${error.message}.`),
    )
    run.onHangup(() => this.#changes.ask())
  }

  /** Reads the file. Rejects with `CONFIG_INVALID` after every fault was printed. */
  async read(): Promise<ServerConfigOptions> {
    const { output, environment } = this.#run
    const { config, faults } = await loadServerConfig(this.#file, environment)
    for (const { at, message } of faults)
      output.event({ type: 'configError', file: this.#file, ...at, message })
    if (config === undefined) throw faultsError(this.#file, faults)
    return serverOptions(config, this.#flags)
  }

  /** Reads the file again. */
  ask(): void {
    this.#changes.ask()
  }

  /** Applies later changes to this server. */
  follow(server: ServerEnd, parts: ServerParts): void {
    this.#server = server
    this.#parts = parts
    this.#changes.begin()
  }

  stop(): void {
    this.#watch.stop()
  }

  async #change(): Promise<void> {
    const server = this.#server
    const parts = this.#parts
    if (server === undefined || parts === undefined || this.#run.stop.aborted) return
    try {
      const { open, ...given } = await this.read()
      parts.checkReload(given)
      const options = parts.options(given)
      if (!open) parts.refuseOpen(options)
      await server.reload(await withGuards(options))
      this.#notice('RELOADED', `${this.#file} is in force.`)
    } catch (error) {
      const message = messageOf(error)
      this.#notice('CONFIG_KEPT', `${withPages(message)} The server continues with its previous settings.`)
    }
  }

  #notice(code: string, message: string): void {
    this.#run.output.event({ type: 'notice', code, message })
  }
}
