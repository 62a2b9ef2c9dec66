// Projects of other people's frameworks, in the versions that test/integrations/projects names. They are installed by Bun, which keeps
// what it has downloaded, so that a second time takes a second.

import { existsSync } from 'node:fs'
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BIN, Running } from '../cli/bin.ts'
import { installOwnPackage } from './own-package.ts'

/** Failure only: a framework that compiles on a busy machine takes its time. */
const DEADLINE_MS = 60_000

export class Project implements AsyncDisposable {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  /** `name`: that of a folder in test/integrations/projects. `entries`: of this package, when it uses it. */
  static async install(name: string, entries: readonly string[] = []): Promise<Project> {
    const folder = await mkdtemp(join(await realpath(tmpdir()), `localtunnels-${name}-`))
    const project = new Project(folder)
    await cp(join(import.meta.dir, '../integrations/projects', name), folder, { recursive: true })
    const install = Bun.spawn(['bun', 'install', '--frozen-lockfile'], {
      cwd: folder,
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const said = await install.stderr.text()
    if ((await install.exited) !== 0) throw new Error(`not installed: ${said}`)
    if (entries.length > 0) await installOwnPackage(folder, entries)
    return project
  }

  /** `files`: texts by path. */
  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, text] of Object.entries(files)) await Bun.write(join(this.folder, path), text)
  }

  /** Node: that of the project, where its framework needs a later one than this machine may have. */
  get node(): string {
    const own = join(this.folder, `node_modules/node-${process.platform}-${process.arch}/bin/node`)
    return existsSync(own) ? own : 'node'
  }

  /** Starts a command of Node. */
  start(words: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
    return new Running([this.node, ...words], this.#environment(env), false, this.folder, DEADLINE_MS)
  }

  /** Starts `localtunnels` of this checkout. */
  share(words: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
    return new Running(['bun', BIN, ...words], this.#environment(env), false, this.folder, DEADLINE_MS)
  }

  /** Nothing of the developer's own, and nothing that calls home. */
  #environment(more: Readonly<Record<string, string>>): Record<string, string> {
    const { PATH = '' } = process.env
    const quiet = {
      NEXT_TELEMETRY_DISABLED: '1',
      ASTRO_TELEMETRY_DISABLED: '1',
      NUXT_TELEMETRY_DISABLED: '1',
    }
    return { PATH, HOME: this.folder, NO_COLOR: '1', ...quiet, ...more }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
