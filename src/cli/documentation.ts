// Where the documentation is. Messages name pages by their path, docs/….md; a release contains the page's URL in
// place of each path (tools/repository.ts).

import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const ERRORS: string = 'docs/errors.md'
const isOnline = ERRORS.startsWith('https:')

/**
 * The folder of the pages. Outside of a release: two folders above `src/cli` in a clone, or above `dist/src/cli` in a package.
 */
export const DOCUMENTATION: string = isOnline ? dirname(ERRORS) : folder()

function folder(): string {
  const places = ['../../docs', '../../../docs'].map(path => fileURLToPath(new URL(path, import.meta.url)))
  return places.find(place => existsSync(place)) ?? 'docs'
}

/**
 * Returns a message with the paths of pages as this installation has them. Pages that it lacks keep their path in the repository.
 */
export function withPages(message: string, folder: string = DOCUMENTATION): string {
  return message.replace(/(?<!\/)\bdocs\/([\w-]+\.md)\b/g, (path, page) =>
    existsSync(`${folder}/${page}`) ? `${folder}/${page}` : path,
  )
}

export function pageOf(code: string): string | undefined {
  return isOnline ? `${ERRORS}#${code.toLowerCase()}` : undefined
}
