// Where the documentation is. The package brings a part of it along, and messages name its pages by their path, docs/….

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { VERSION } from '../version.ts'

/** A single executable has no pages: those of the same version are in the npm package, and unpkg shows its files. */
const PUBLISHED = `https://unpkg.com/localtunnels@${VERSION}/docs`
/** `files` of package.json. */
const IN_PACKAGE = ['configuration.md']

const isExecutable = 'Bun' in globalThis && Bun.isStandaloneExecutable

/** The folder of the pages. From `src/cli` in a clone, from `dist/src/cli` in the package. */
export const DOCUMENTATION: string = isExecutable ? PUBLISHED : folder()

function folder(): string {
  return ['../../docs', '../../../docs']
    .map(path => fileURLToPath(new URL(path, import.meta.url)))
    .reduce((clone, packed) => (existsSync(clone) ? clone : packed))
}

/** A message with the pages that it names where this installation has them; the others keep their path in the repository. */
export function withPages(message: string, folder: string = DOCUMENTATION): string {
  const has = (page: string) => (isExecutable ? IN_PACKAGE.includes(page) : existsSync(`${folder}/${page}`))
  return message.replace(/\bdocs\/([\w-]+\.md)\b/g, (path, page) => (has(page) ? `${folder}/${page}` : path))
}
