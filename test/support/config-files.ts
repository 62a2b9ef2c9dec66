// Configuration files in a folder of their own, loaded as the program loads them.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Checked } from '../../src/config/check.ts'
import type { ClientConfig } from '../../src/config/client-config.ts'
import { faultLine } from '../../src/config/fault.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { ServerConfig } from '../../src/config/server-config.ts'

export class ConfigFiles implements AsyncDisposable {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  static async make(): Promise<ConfigFiles> {
    return new ConfigFiles(await mkdtemp(join(tmpdir(), 'localtunnels-config-')))
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  async write(name: string, content: string | Uint8Array): Promise<string> {
    await Bun.write(this.path(name), content)
    return this.path(name)
  }

  async load(
    name: string,
    content: string | Uint8Array,
    environment: Readonly<Record<string, string>> = {},
    kind?: 'client' | 'server',
  ): Promise<Checked<ClientConfig | ServerConfig>> {
    return loadConfig(await this.write(name, content), { environment, kind })
  }

  /** The lines that are printed for a file. */
  async faults(
    name: string,
    content: string | Uint8Array,
    environment: Readonly<Record<string, string>> = {},
    kind?: 'client' | 'server',
  ): Promise<readonly string[]> {
    const { faults, config } = await this.load(name, content, environment, kind)
    if ((config === undefined) !== faults.length > 0)
      throw new Error('a configuration or faults, not both and not neither')
    return faults.map(fault => faultLine(name, fault))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}
