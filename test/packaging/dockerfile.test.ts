// The Dockerfile, as a linter reads it. Building it needs the images that it stands on, which a registry of images has.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { testWith } from '../support/needs.ts'
import { run } from '../support/programs.ts'

const DOCKERFILE = join(import.meta.dir, '../../packaging/Dockerfile')

testWith(['hadolint'], 'hadolint finds nothing in the Dockerfile', async () => {
  const { out, code } = await run(['hadolint', '--no-color', DOCKERFILE])
  expect(out).toBe('')
  expect(code).toBe(0)
})
