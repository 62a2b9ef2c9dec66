// The cluster of a worker: the directory of the process that started it, and peers next to it.

import { join } from 'node:path'
import { UnixDirectory } from '../../directories/unix.ts'
import type { ClusterOptions } from '../../server/settings/part-options.ts'
import { othersIdle, type Place } from './workers.ts'

export class WorkerCluster {
  readonly options: ClusterOptions
  readonly #directory: UnixDirectory

  /** Rejects when the process that started this one is gone. */
  static async open({ number, folder }: Place): Promise<WorkerCluster> {
    const directory = await UnixDirectory.open(join(folder, 'directory'))
    // The socket of the worker before may be there still.
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
