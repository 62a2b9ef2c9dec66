// A folder as an origin: a fetch handler of our own serves its files in this process, on either wire.

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Origin } from '../../client/origins/origin.ts'
import { messageOf, optionInvalid } from '../../errors.ts'
import { HandlerOrigin } from './origin.ts'

/** Returns the origin of a folder. Throws `OPTION_INVALID` if it is not a folder; afterwards the folder may come and go. */
export function folderOrigin(folder: string, isSpa: boolean): Origin {
  const problem = problemOf(folder)
  if (problem !== undefined) throw optionInvalid(`Cannot serve "${folder}": ${problem}.`)
  // Resolved now, in case the program changes its working directory.
  const root = resolve(folder)
  let answer: ((request: Request) => Promise<Response>) | undefined
  // The code that serves files is loaded with the first request, because most clients serve none.
  return new HandlerOrigin(async request => {
    answer ??= (await import('./folder/handler.ts')).folderHandler(root, isSpa)
    return answer(request)
  }, folder)
}

function problemOf(folder: string): string | undefined {
  try {
    // An empty path would mean the working directory, which the user did not name.
    const stats = folder === '' ? undefined : statSync(folder, { throwIfNoEntry: false })
    if (stats === undefined) return 'there is no such folder'
    return stats.isDirectory() ? undefined : 'it is not a folder'
  } catch (error) {
    return messageOf(error)
  }
}
