// Unix sockets that only this user can open, from the first moment on.

import { chmodSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Binds a socket that only this user can reach. `bind` makes the socket at `path` before it returns. If the mode were
 * set afterwards, others could connect in between.
 */
export function bindPrivately<Bound>(path: string, bind: () => Bound): Bound {
  // The mask belongs to the process, and other threads may not set it. A folder that one makes at this time is still
  // usable by its user.
  const mask = isMainThread ? process.umask(0o077) : undefined
  try {
    const bound = bind()
    if (mask === undefined) chmodSync(path, 0o700)
    return bound
  } finally {
    if (mask !== undefined) process.umask(mask)
  }
}
