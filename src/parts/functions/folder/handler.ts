// Responds to requests with the files of a folder. This file decides what a visitor gets for a path.

import { resolve } from 'node:path'
import { fileAnswer, isPageAccepted, notFoundAnswer, plainAnswer } from './answer.ts'
import { type FolderPath, folderPath, locate, type Place } from './file.ts'

const INDEX = 'index.html'

/** Makes the handler. `isSpa`: a missing page gets `/index.html`. */
export function folderHandler(folder: string, isSpa: boolean): (request: Request) => Promise<Response> {
  // Wherever the program goes from here.
  const root = resolve(folder)
  return async request => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return plainAnswer(405, 'Only GET and HEAD are served here.', { allow: 'GET, HEAD' })
    }
    const url = new URL(request.url)
    const path = folderPath(url.pathname)
    // Not even the page of an app: such a request looks for something else.
    if (path === undefined) return notFoundAnswer(request)
    const page = await pageAt(root, path)
    const answer = page === 'slash' ? slashAnswer(url) : page && (await fileAnswer(request, page))
    if (answer !== undefined) return answer
    return isSpa ? await appAnswer(request, root, path) : notFoundAnswer(request)
  }
}

/** The file for a path; `slash` when its slash is missing, without which no link of the page would fit. */
async function pageAt(root: string, { names, isFolder }: FolderPath): Promise<Place | 'slash' | undefined> {
  const place = await locate(root, names)
  // A file with a slash behind is nothing.
  if (place?.isFolder !== true) return isFolder ? undefined : place
  const index = await locate(root, [...names, INDEX])
  if (index?.isFolder !== false) return undefined
  return isFolder ? index : 'slash'
}

/** A request for something else than a page gets another response at the same URL: so Vary. */
async function appAnswer(request: Request, root: string, path: FolderPath): Promise<Response> {
  const vary = { vary: 'accept' }
  const index = isPageWanted(request, path) ? await locate(root, [INDEX]) : undefined
  const answer = index?.isFolder === false ? await fileAnswer(request, index, vary) : undefined
  return answer ?? notFoundAnswer(request)
}

/** A browser that goes to a page of the app, rather than a page that looks for a file which is not there. */
function isPageWanted(request: Request, { names }: FolderPath): boolean {
  return isPageAccepted(request.headers) && names.at(-1)?.includes('.') !== true
}

function slashAnswer({ pathname, search }: URL): Response {
  // Not 301, which browsers keep without limit: tomorrow another app has this URL.
  return plainAnswer(302, 'This is a folder.', { location: `${pathname}/${search}` })
}
