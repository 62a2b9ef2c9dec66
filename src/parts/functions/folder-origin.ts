// Origin as a folder: its files, served in process by a fetch handler of our own, on either wire.

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Origin } from '../../client/origins/origin.ts'
import { messageOf, optionInvalid } from '../../errors.ts'
import { HandlerOrigin } from './origin.ts'

/** A folder that is there; anything else is `OPTION_INVALID`. Afterwards it may come and go. */
export function folderOrigin(folder: string, isSpa: boolean): Origin {
  const problem = problemOf(folder)
  if (problem !== undefined) throw optionInvalid(`Cannot serve "${folder}": ${problem}.`)
  // Wherever the program goes from here.
  const root = resolve(folder)
  let answer: ((request: Request) => Promise<Response>) | undefined
  // The code that serves files is loaded with the first request: most clients have none.
  return new HandlerOrigin(async request => {
    answer ??= (await import('./folder/handler.ts')).folderHandler(root, isSpa)
    return answer(request)
  }, folder)
}

function problemOf(folder: string): string | undefined {
  try {
    // An empty path would be resolved to the working directory, which the user did not name.
    const stats = folder === '' ? undefined : statSync(folder, { throwIfNoEntry: false })
    if (stats === undefined) return 'there is no such folder'
    return stats.isDirectory() ? undefined : 'it is not a folder'
  } catch (error) {
    return messageOf(error)
  }
}
