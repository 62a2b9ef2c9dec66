// Where the repository is, which only a release knows: package.json says it, and what is built names its pages by their URL.
//
//   bun tools/repository.ts https://github.com/OWNER/REPOSITORY      writes `repository`, `homepage` and `bugs`

import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'

const path = resolve(import.meta.dir, '../package.json')

interface Manifest {
  readonly version: string
  readonly repository?: { readonly url: string }
}

const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest
/** Of this version: pages of a later one may say something else. */
const pages = manifest.repository?.url
  .replace(/^git\+|\.git$/g, '')
  .concat(`/blob/v${manifest.version}/docs/`)

/** Source text whose messages name pages, docs/….md, by URL where package.json says the repository. */
export function withPageUrls(text: string): string {
  return pages === undefined ? text : text.replace(/(?<![\w./-])docs\/(?=[\w-]+\.md\b)/g, pages)
}

if (import.meta.main) {
  const [url = ''] = process.argv.slice(2)
  if (!/^https:\/\/[\w.-]+(?::\d+)?\/[\w.-]+\/[\w.-]+$/.test(url)) {
    console.error('error: Say where the repository is: https://github.com/OWNER/REPOSITORY.')
    process.exit(2)
  }
  const address = {
    // As npm compares it with what a provenance statement says.
    repository: { type: 'git', url: `git+${url}.git` },
    homepage: `${url}#readme`,
    bugs: { url: `${url}/issues` },
  }
  writeFileSync(path, `${JSON.stringify({ ...manifest, ...address }, null, 2)}\n`)
}
