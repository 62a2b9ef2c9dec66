// A saved run to docs/benchmarks.md, its charts, its CSV files and the figures of README.md and docs/performance.md.
//
//   bun benchmarks/report.ts --publish [--minutes 30]   measures, saves as benchmarks/results/VERSION.json, writes the documents
//   bun benchmarks/report.ts FILE [FOLDER]              writes the documents of a saved run, into another folder than docs
//
// A file is refused whose suites are of several commits or machines, that was made with other code than this, or that has
// fewer rounds than it says. The run that `--publish` replaces stays beside it as VERSION.previous.json.

import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { codeHash } from './measure/environment.ts'
import { options, refuse, savedRun } from './measure/suite.ts'
import { documentsOf, writeDocuments } from './report/pages.ts'
import { WITH_FIGURES, withFigures } from './report/readme.ts'
import { faultsOf } from './report/refusals.ts'

const ROOT = join(import.meta.dir, '..')
const [given, folder] = options.words
const file = options.publish ? await publish(options.minutes ?? 30) : given
if (file === undefined) refuse('which saved run? bun benchmarks/report.ts benchmarks/results/VERSION.json')
const run = await savedRun(file)
const faults = faultsOf(run, codeHash())
if (faults.length > 0) {
  for (const fault of faults) console.error(`error: ${file}: ${fault}`)
  process.exit(1)
}
const documents = await documentsOf(run)
await writeDocuments(documents, folder ?? join(ROOT, 'docs'))
console.log(`${documents.size} files in ${folder ?? 'docs'}`)
for (const [name, figures] of Object.entries(folder === undefined ? WITH_FIGURES : {})) {
  const document = Bun.file(join(ROOT, name))
  await Bun.write(document, withFigures(await document.text(), run, figures))
}

async function publish(minutes: number): Promise<string> {
  const { version } = (await Bun.file(join(ROOT, 'package.json')).json()) as { version: string }
  const target = join(ROOT, `benchmarks/results/${version}.json`)
  const fresh = target.replace('.json', '.new.json')
  rmSync(fresh, { force: true })
  const flags = ['--minutes', String(minutes), '--json', fresh]
  const child = Bun.spawn(['bun', join(ROOT, 'benchmarks/index.ts'), ...flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill(signal))
  const code = await child.exited
  if (code !== 0 || !existsSync(fresh)) {
    console.error(`error: the run ended with ${code}; what it measured is in ${fresh}`)
    process.exit(1)
  }
  if (existsSync(target)) renameSync(target, target.replace('.json', '.previous.json'))
  renameSync(fresh, target)
  return target
}
