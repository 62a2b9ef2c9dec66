// Used links in a file, for a server's `guarding`. SQLite is loaded when it is asked for: the client runs where there is none.

import type { UsedLinks } from '../store.ts'

/**
 * For `usedLinks` of `guarding()`: links that work once and were used, in a SQLite file with mode 0600. Its owner closes it after
 * `server.stop()`. Rejects with `OPTION_INVALID` when the file cannot be used. Bun only.
 */
export async function openUsedLinks(path: string): Promise<UsedLinks> {
  const { SqliteUsedLinks } = await import('./sqlite-used-links.ts')
  return new SqliteUsedLinks(path)
}
