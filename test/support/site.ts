// A folder of files for tests, with something beside it that nobody may see, and a tunnel to it in each of three ways.

import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startServer, startTunnel } from './tunnel.ts'
import { within } from './within.ts'

/** File names with their contents; `→ target` makes a symbolic link. */
export type Files = Readonly<Record<string, string | Uint8Array>>

export class Site implements AsyncDisposable {
  /** What is served. */
  readonly folder: string
  readonly #parent: string

  private constructor(parent: string) {
    this.#parent = parent
    this.folder = join(parent, 'site')
  }

  /** `files` in the folder, and `../outside/secret.txt` beside it. */
  static async of(files: Files): Promise<Site> {
    const site = new Site(await mkdtemp(join(tmpdir(), 'localtunnels-site-')))
    await mkdir(site.folder)
    await site.write({ '../outside/secret.txt': 'secret', ...files })
    return site
  }

  async write(files: Files): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name)
      await mkdir(name.endsWith('/') ? path : dirname(path), { recursive: true })
      if (name.endsWith('/')) continue
      if (typeof content === 'string' && content.startsWith('→ ')) await symlink(content.slice(2), path)
      else await writeFile(path, content)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#parent, { recursive: true })
  }
}

export interface SiteTunnel extends AsyncDisposable {
  readonly port: number
  readonly host: string
}

export const WAYS = ['streams', 'json', 'Node'] as const

/** A tunnel to the folder: over either wire, or with the client on Node. */
export async function siteTunnel(
  way: (typeof WAYS)[number],
  folder: string,
  spa = false,
): Promise<SiteTunnel> {
  if (way !== 'Node') return startTunnel({ folder, spa }, { wire: way })
  const entrypoints = [join(import.meta.dir, 'folder-process.ts')]
  const built = await Bun.build({ entrypoints, target: 'node' })
  const scripts = await mkdtemp(join(tmpdir(), 'localtunnels-'))
  const script = join(scripts, 'client.mjs')
  await Bun.write(script, built.outputs[0]!)
  const server = await startServer()
  const client = Bun.spawn(['node', script, server.url, folder, String(spa)], { stdout: 'pipe' })
  await within(client.stdout.getReader().read(), 'the client to connect')
  return {
    port: server.port,
    host: 'app.localhost',
    async [Symbol.asyncDispose]() {
      client.kill()
      await client.exited
      await server.stop()
      await rm(scripts, { recursive: true })
    },
  }
}
