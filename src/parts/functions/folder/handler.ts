// Responds to requests with the files of a folder. This file decides which file a path means.

import { resolve } from 'node:path'
import { fileAnswer, isPageAccepted, notFoundAnswer, plainAnswer } from './answer.ts'
import { type FolderPath, folderPath, locate, type Place } from './file.ts'

const INDEX = 'index.html'

/** Makes the handler. `isSpa`: a missing page gets `/index.html`. */
export function folderHandler(folder: string, isSpa: boolean): (request: Request) => Promise<Response> {
  // Resolved now, in case the program changes its working directory.
  const root = resolve(folder)
  return async request => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return plainAnswer(405, 'Only GET and HEAD are served here.', { allow: 'GET, HEAD' })
    }
    const url = new URL(request.url)
    const path = folderPath(url.pathname)
    // Not even the app's page: such a request is for something else.
    if (path === undefined) return notFoundAnswer(request)
    const page = await pageAt(root, path)
    const answer = page === 'slash' ? slashAnswer(url) : page && (await fileAnswer(request, page))
    if (answer !== undefined) return answer
    return isSpa ? await appAnswer(request, root, path) : notFoundAnswer(request)
  }
}

/** Finds the file for a path. `slash` if the path lacks its slash, without which the page's relative links would be wrong. */
async function pageAt(root: string, { names, isFolder }: FolderPath): Promise<Place | 'slash' | undefined> {
  const place = await locate(root, names)
  // A file with a slash after its name does not exist.
  if (place?.isFolder !== true) return isFolder ? undefined : place
  const index = await locate(root, [...names, INDEX])
  if (index?.isFolder !== false) return undefined
  return isFolder ? index : 'slash'
}

/** Returns the app's page. A request that does not want a page gets another response at the same URL, so Vary is set. */
async function appAnswer(request: Request, root: string, path: FolderPath): Promise<Response> {
  const vary = { vary: 'accept' }
  const index = isPageWanted(request, path) ? await locate(root, [INDEX]) : undefined
  const answer = index?.isFolder === false ? await fileAnswer(request, index, vary) : undefined
  return answer ?? notFoundAnswer(request)
}

/** Whether a browser opens a page of the app, rather than a page loading a missing file. */
function isPageWanted(request: Request, { names }: FolderPath): boolean {
  return isPageAccepted(request.headers) && names.at(-1)?.includes('.') !== true
}

function slashAnswer({ pathname, search }: URL): Response {
  // A 301 would be cached without limit, and another app may have this URL tomorrow.
  return plainAnswer(302, 'This is a folder.', { location: `${pathname}/${search}` })
}
