// Unix sockets that only this user can open, from their first moment on.

import { chmodSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Binds a socket that only this user can reach. `bind` makes the socket at `path` before it returns. A mode that is set
 * afterwards leaves others a moment to connect.
 */
export function bindPrivately<Bound>(path: string, bind: () => Bound): Bound {
  // Of the process: other threads may not set it. A folder that one makes in the meantime stays one that its user can enter.
  const mask = isMainThread ? process.umask(0o077) : undefined
  try {
    const bound = bind()
    if (mask === undefined) chmodSync(path, 0o700)
    return bound
  } finally {
    if (mask !== undefined) process.umask(mask)
  }
}
