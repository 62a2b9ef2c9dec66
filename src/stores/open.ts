// The stores of a server, in files that only its user can read (mode 0600). SQLite is loaded only when needed,
// because the client also runs without it.

import type { InboxStore } from '../inbox.ts'
import type { AuditLog, OperationsStore } from '../operations.ts'
import type { UsedLinks } from '../store.ts'

/**
 * For `inbox.store` of a server: webhooks that wait for their client, in a SQLite file with mode 0600. Its owner closes it after
 * `server.stop()`. Rejects with `OPTION_INVALID` when the file cannot be used. Bun only.
 */
export async function openInbox(path: string): Promise<InboxStore> {
  const { SqliteInbox } = await import('./sqlite-inbox.ts')
  return new SqliteInbox(path)
}

/**
 * For `store` and `audit` of a server's `admin`: traffic, bans and what was done, in a SQLite file with mode 0600. Its owner closes it
 * after `server.stop()`. Rejects with `OPTION_INVALID` when the file cannot be used. Bun only.
 */
export async function openOperations(path: string): Promise<OperationsStore & AuditLog> {
  const { SqliteOperations } = await import('./sqlite-operations.ts')
  return new SqliteOperations(path)
}

/**
 * For `usedLinks` of `guarding()`: links that work once and were used, in a SQLite file with mode 0600. Its owner closes it after
 * `server.stop()`. Rejects with `OPTION_INVALID` when the file cannot be used. Bun only.
 */
export async function openUsedLinks(path: string): Promise<UsedLinks> {
  const { SqliteUsedLinks } = await import('./sqlite-used-links.ts')
  return new SqliteUsedLinks(path)
}
