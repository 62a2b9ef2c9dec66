// What an operator's view of a server keeps, in a file. SQLite is loaded when it is asked for: the client runs where there is none.

import type { AuditLog, OperationsStore } from '../operations.ts'

/**
 * For `store` and `audit` of a server's `admin`: traffic, bans and what was done, in a SQLite file with mode 0600. Its owner closes it
 * after `server.stop()`. Rejects with `OPTION_INVALID` when the file cannot be used. Bun only.
 */
export async function openOperations(path: string): Promise<OperationsStore & AuditLog> {
  const { SqliteOperations } = await import('./sqlite-operations.ts')
  return new SqliteOperations(path)
}
