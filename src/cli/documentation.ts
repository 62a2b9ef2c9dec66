// Where the documentation is: the package brings it along, and messages name its pages by their path, docs/….

import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { VERSION } from '../version.ts'

/** A single executable has no pages: those of the same version are in the npm package, and unpkg shows its files. */
const PUBLISHED = `https://unpkg.com/localtunnels@${VERSION}/docs`

/** The folder of the pages. From `src/cli` in a clone, from `dist/src/cli` in the package. */
export const DOCUMENTATION: string = 'Bun' in globalThis && Bun.isStandaloneExecutable ? PUBLISHED : folder()

function folder(): string {
  return ['../../docs', '../../../docs']
    .map(path => fileURLToPath(new URL(path, import.meta.url)))
    .reduce((clone, packed) => (existsSync(clone) ? clone : packed))
}

/** A message with the pages that it names where this installation has them. */
export function withPages(message: string): string {
  return message.replace(/\bdocs\/(?=\w+\.md\b)/g, `${DOCUMENTATION}/`)
}
