// What goes wrong with the threads behind the sockets of this process, as errors for an `error` event.

import { TunnelError } from '../errors.ts'
import { type Fault, watchFaults } from '../splice/faults.ts'

const CODES = { failed: 'WORKER_FAILED', scarce: 'DESCRIPTORS_SHORT' } as const

/** Calls `failed` for every fault from now on. Returns the function that stops it. */
export function watchWorkers(failed: (error: TunnelError) => void): () => void {
  return watchFaults(({ kind, detail, cause }: Fault) =>
    failed(new TunnelError(CODES[kind], detail, { cause })),
  )
}
