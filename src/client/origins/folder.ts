// Origin as a folder: its files, answered in process by a fetch handler of our own, on either wire.

import { statSync } from 'node:fs'
import { TunnelError } from '../../errors.ts'
import { folderHandler } from '../folder/handler.ts'
import type { Origin } from '../origin.ts'
import { HandlerOrigin } from './handler.ts'

/** A folder that is there; anything else is `OPTION_INVALID`. Afterwards it may come and go. */
export function folderOrigin(folder: string, isSpa: boolean): Origin {
  const problem = problemOf(folder)
  if (problem !== undefined) throw new TunnelError('OPTION_INVALID', `Cannot serve "${folder}": ${problem}.`)
  return new HandlerOrigin(folderHandler(folder, isSpa), folder)
}

function problemOf(folder: string): string | undefined {
  try {
    // An empty path would be resolved to the working directory, which the user did not name.
    const stats = folder === '' ? undefined : statSync(folder, { throwIfNoEntry: false })
    if (stats === undefined) return 'there is no such folder'
    return stats.isDirectory() ? undefined : 'it is not a folder'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
