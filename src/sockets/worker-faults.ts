// Reports failures of the threads behind the sockets of this process, for an `error` event.

import { accelerator } from '../accelerator/door.ts'
import type { Fault } from '../accelerator.ts'
import { ERRORS, TunnelError } from '../errors.ts'

const CODES = { failed: 'WORKER_FAILED', scarce: 'DESCRIPTORS_SHORT' } as const

/** Calls `failed` for every fault from now on. Returns the function that stops it. */
export function watchWorkers(failed: (error: TunnelError) => void): () => void {
  const report = ({ kind, detail, cause }: Fault) => {
    const code = CODES[kind]
    failed(new TunnelError(code, detail, { cause, action: ERRORS[code].operator }))
  }
  return accelerator?.watchFaults(report) ?? (() => {})
}
