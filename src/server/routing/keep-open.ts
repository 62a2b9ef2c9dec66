// Guards may cut what they let in while it lasts. A guard is a stranger's code: what it throws is reported, and concerns no
// other visitor.

import { eventLoop } from '../../event-loop.ts'
import type { Pass } from '../../plugin.ts'

/**
 * Calls `whileOpen` of each pass. Returns what to call when the connection is over, after which no guard can cut anything. When one
 * throws as it begins, those before it are over, and the error is thrown. `failed`: gets what they throw at the end.
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
    // The caller has nothing to cut yet.
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
