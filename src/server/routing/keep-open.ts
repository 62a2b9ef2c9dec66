// Lets guards cut connections that they admitted. A guard is foreign code: what it throws is reported, and affects no
// other visitor.

import { eventLoop } from '../../event-loop.ts'
import type { Pass } from '../../plugin.ts'

/**
 * Calls `whileOpen` of each pass. Returns the function to call at the end of the connection; after it, no guard can cut anything.
 * If a call throws, the earlier ones are ended and the error is thrown. `failed` gets errors that they throw at the end.
 */
export function keepOpen(
  passes: readonly Pass[],
  cut: () => void,
  failed: (cause: unknown) => void,
): () => void {
  const ends: (() => void)[] = []
  let isBeginning = true
  let isOver = false
  const over = (): void => {
    isOver = true
    for (const end of ends.splice(0))
      try {
        end()
      } catch (cause) {
        failed(cause)
      }
  }
  const cutOnce = (): void => {
    if (isOver) return
    // The caller has no connection to cut before `keepOpen` returns.
    if (isBeginning) eventLoop.soon(cutOnce)
    else cut()
  }
  try {
    for (const { whileOpen } of passes) if (whileOpen !== undefined) ends.push(whileOpen(cutOnce))
  } catch (cause) {
    over()
    throw cause
  }
  isBeginning = false
  return over
}
