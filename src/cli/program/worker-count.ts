// What `--workers` means.

import { availableParallelism } from 'node:os'
import { TunnelError } from '../../errors.ts'

/** More are of no use: each core has one. */
const MOST_WORKERS = 64

/** Throws `OPTION_INVALID`. */
export function workerCount(text: string): number {
  if (text === 'auto') return Math.min(availableParallelism(), MOST_WORKERS)
  const count = Number(text)
  if (/^\d{1,3}$/.test(text) && count >= 1 && count <= MOST_WORKERS) return count
  throw new TunnelError(
    'OPTION_INVALID',
    `--workers "${text}" is neither auto nor a number from 1 to ${MOST_WORKERS}.`,
  )
}
