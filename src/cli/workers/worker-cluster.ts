// The cluster of a worker: uses the directory of the process that started it, and the other workers as peers.

import { join } from 'node:path'
import { UnixDirectory } from '../../directories/unix.ts'
import type { ClusterOptions } from '../../server/settings/part-options.ts'
import { othersIdle, type Place } from './workers.ts'

export class WorkerCluster {
  readonly options: ClusterOptions
  readonly #directory: UnixDirectory

  /** Opens the cluster. Rejects if the process that started this one is gone. */
  static async open({ number, folder }: Place): Promise<WorkerCluster> {
    const directory = await UnixDirectory.open(join(folder, 'directory'))
    // The socket of the previous worker may still exist.
    const peerUrl = `unix:${join(folder, `worker-${number}-${process.pid}`)}`
    return new WorkerCluster({ directory, peerUrl, othersIdle, times: { earlyMs: 0 } }, directory)
  }

  private constructor(options: ClusterOptions, directory: UnixDirectory) {
    this.options = options
    this.#directory = directory
  }

  check(): void {}

  close(): void {
    void this.#directory.close()
  }
}
