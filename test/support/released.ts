// The sources as the workflow of a release has them when it builds: with the address of a repository that there is not.

import { cp, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { VERSION } from '../../src/version.ts'
import { run } from './programs.ts'

const ROOT = resolve(import.meta.dir, '../..')
const REPOSITORY = 'acme/localtunnels'
export const ADDRESS: string = `https://github.com/${REPOSITORY}`
/** Where messages say that the pages are. */
export const PAGES: string = `${ADDRESS}/blob/v${VERSION}/docs`

const READ =
  'bin docs src tools packaging biome.json bun.lock package.json tsconfig.json tsconfig.build.json LICENSE README.md'.split(
    ' ',
  )

/** Copies what a build reads into `folder`. */
export async function copySources(folder: string): Promise<void> {
  for (const name of READ) await cp(join(ROOT, name), join(folder, name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}

/** The same, and what the workflow does before it builds. */
export async function release(folder: string): Promise<void> {
  await copySources(folder)
  const workflow = Bun.YAML.parse(await Bun.file(join(ROOT, '.github/workflows/release.yml')).text()) as {
    jobs: { files: { steps: { run?: string }[] } }
  } // as the file has it
  const step = workflow.jobs.files.steps.find(({ run: command }) => command?.includes('tools/repository.ts'))
  const environment = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: REPOSITORY }
  const { code, err } = await run(['bash', '-c', `cd '${folder}' && ${step?.run}`], environment)
  if (code !== 0) throw new Error(err)
}
