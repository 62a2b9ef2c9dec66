// tmp
import type { Connection } from './connection.ts'
export async function connectJson(..._a: unknown[]): Promise<Connection> {
  throw new Error('tmp')
}
