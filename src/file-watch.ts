// Notices that files have changed, by any of the methods with which editors, certbot and orchestrators write them.

import { type FSWatcher, realpathSync, statSync, watch } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** The time in milliseconds without changes after which a file is read, because it may be written in pieces. */
const SETTLE_MS = 50

export class FileWatch {
  readonly #paths: readonly string[]
  readonly #changed: () => void
  readonly #failed: (error: Error) => void
  #watchers: FSWatcher[] = []
  /** The state of the files when `changed` was last called. */
  #seen: string
  #looked = ''
  #timer: ReturnType<typeof setTimeout> | undefined

  /** Watches `paths`. `failed` is called if changes could go unnoticed. */
  constructor(paths: readonly string[], changed: () => void, failed: (error: Error) => void) {
    this.#paths = paths.map(path => resolve(path))
    this.#changed = changed
    this.#failed = failed
    this.#seen = this.#stamp()
    this.#watchFolders()
  }

  stop(): void {
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers) watcher.close()
  }

  /**
   * Watches folders, because a file that is replaced is not the one that was watched. If the file is a link, watches two folders.
   */
  #watchFolders(): void {
    const earlier = this.#watchers
    this.#watchers = []
    try {
      const folders = this.#paths.flatMap(path => [dirname(path), realFolder(path)])
      for (const folder of new Set(folders)) {
        const watcher = watch(folder, () => this.#stirred())
        watcher.on('error', this.#failed)
        this.#watchers.push(watcher)
      }
    } catch (error) {
      this.#failed(error instanceof Error ? error : new Error(String(error)))
    }
    for (const watcher of earlier) watcher.close()
  }

  /** Called when something in the folder changed. Many changes in a row cause only one check. */
  #stirred(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const stamp = this.#stamp()
      if (stamp === this.#seen) return
      if (stamp === this.#looked) {
        this.#seen = stamp
        // A link may point to another place now.
        this.#watchFolders()
        this.#changed()
      } else {
        // The write may still be in progress.
        this.#looked = stamp
        this.#stirred()
      }
    }, SETTLE_MS)
  }

  #stamp(): string {
    return this.#paths.map(stampOf).join('\n')
  }
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true })
  return stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.mtimeNs}`
}

function realFolder(path: string): string {
  try {
    return dirname(realpathSync(path))
  } catch {
    // The file does not exist, so only its folder can be watched.
    return dirname(path)
  }
}
