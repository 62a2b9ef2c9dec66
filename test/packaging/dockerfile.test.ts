// The Dockerfiles, as a linter reads them. Building them needs the images that they stand on, which a registry of images has.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { testWith } from '../support/needs.ts'
import { run } from '../support/programs.ts'

for (const name of ['packaging/Dockerfile', 'benchmarks/Dockerfile'])
  testWith(['hadolint'], `hadolint finds nothing in ${name}`, async () => {
    const { out, code } = await run(['hadolint', '--no-color', join(import.meta.dir, '../..', name)])
    expect(out).toBe('')
    expect(code).toBe(0)
  })
