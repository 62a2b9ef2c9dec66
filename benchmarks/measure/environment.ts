// The machine, the code and the versions behind a run: saved with every result, printed above every table.

import { existsSync, readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')

export interface Environment {
  readonly date: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly system: string
  /** Of TCP: what a program has that chooses none. On Linux. */
  readonly congestion?: string
  readonly bun: string
  readonly commit: string
  /** Hash of all that a figure depends on: the program, and the benchmarks without their report. */
  readonly code: string
  readonly tools: Readonly<Record<string, string>>
}

export const CONGESTION = '/proc/sys/net/ipv4/tcp_congestion_control'
const CODE = ['src/**/*', 'bin/*', 'benchmarks/**/*.{ts,c,go,mjs,cjs,json}', 'package.json', 'bun.lock']
const NO_CODE = /^benchmarks\/(?:results|report|report\.ts|.*node_modules)(?:\/|$)/

/** Of the files as they are on the disk: neither a commit nor git is needed. */
export function codeHash(): string {
  const files = CODE.flatMap(pattern => [...new Bun.Glob(pattern).scanSync(ROOT)])
  const hasher = new Bun.CryptoHasher('sha256')
  for (const file of files.filter(name => !NO_CODE.test(name)).toSorted())
    hasher.update(file).update(readFileSync(join(ROOT, file)))
  return hasher.digest('hex').slice(0, 16)
}

export async function environment(tools: Readonly<Record<string, string>> = {}): Promise<Environment> {
  const git = async (...words: readonly string[]): Promise<string> =>
    (await Bun.$`git ${words}`.cwd(ROOT).nothrow().quiet().text()).trim()
  const commit = await git('rev-parse', '--short', 'HEAD')
  return {
    date: new Date().toISOString().slice(0, 19),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    ...(existsSync(CONGESTION) && { congestion: readFileSync(CONGESTION, 'utf8').trim() }),
    bun: Bun.version,
    // The result file itself is written by the run.
    commit:
      (commit || 'unknown') +
      ((await git('status', '--porcelain', '--', '.', ':!benchmarks/results')) ? ' + changes' : ''),
    code: codeHash(),
    tools,
  }
}

export function environmentLine(env: Environment): string {
  return `${env.cpu}, ${env.cores} cores, ${env.memoryGb} GB, ${env.system}${env.congestion ? `, TCP ${env.congestion}` : ''}, Bun ${env.bun}, commit ${env.commit}, ${env.date}`
}
