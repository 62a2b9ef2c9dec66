// The links that work once and were used, stored in the state folder by `localtunnels server`.

import { join } from 'node:path'
import { stateFolder } from '../../state-folder.ts'
import type { UsedLinks } from '../../store.ts'
import { openUsedLinks } from '../../stores/open.ts'

type Environment = Readonly<Record<string, string | undefined>>

export class UsedLinksFile {
  readonly #environment: Environment
  #opened: Promise<UsedLinks | undefined> | undefined

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /**
   * Opens the store with the first tunnel that has links. `undefined` without a state folder: then nothing outlives the server.
   */
  readonly open = (): Promise<UsedLinks | undefined> => {
    this.#opened ??= this.#open()
    return this.#opened
  }

  async #open(): Promise<UsedLinks | undefined> {
    const folder = stateFolder(this.#environment)
    return folder === undefined ? undefined : openUsedLinks(join(folder, 'links.db'))
  }

  async close(): Promise<void> {
    // If the store could not be opened, the tunnels were refused, and nothing is open.
    const opened = await this.#opened?.catch(() => undefined)
    opened?.close()
  }
}
