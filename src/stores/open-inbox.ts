// An inbox in a file, for a server's `inbox`. SQLite is loaded when it is asked for: the client runs where there is none.

import type { InboxStore } from '../inbox.ts'

/**
 * For `inbox.store` of a server: webhooks that wait for their client, in a SQLite file with mode 0600. Its owner closes it after
 * `server.stop()`. Rejects with `OPTION_INVALID` when the file cannot be used. Bun only.
 */
export async function openInbox(path: string): Promise<InboxStore> {
  const { SqliteInbox } = await import('./sqlite-inbox.ts')
  return new SqliteInbox(path)
}
