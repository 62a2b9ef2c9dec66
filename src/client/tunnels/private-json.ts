// Small JSON files with secrets, one for each server and name. Only this user can read and write them, and no reader
// sees one half written.

import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The flags for opening a file. Otherwise opening a FIFO waits for a writer. Windows has no such flag. */
const READ_NOW = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

export function privatePath(folder: string, server: string, kind: string, name: string): string {
  const digest = createHash('sha256').update(server).digest('hex').slice(0, 16)
  return join(folder, `${kind}-${name}-${digest}.json`)
}

/** Returns the content. `undefined` if the file is not JSON, or another user could have written or read it. */
export async function readPrivate(path: string): Promise<unknown> {
  const file = await open(path, READ_NOW).catch(() => undefined)
  try {
    const stats = await file?.stat()
    if (file === undefined || stats?.isFile() !== true) return undefined
    const isOurs = (stats.mode & 0o077) === 0 && stats.uid === process.getuid?.()
    if (process.platform !== 'win32' && !isOurs) return undefined
    return JSON.parse(await file.readFile('utf8'))
  } catch {
    return undefined
  } finally {
    await file?.close()
  }
}

/** Writes the file. Rejects with the error of the file system. */
export async function writePrivate(path: string, value: object): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // Writes a new file and then replaces the old one: no reader sees half a file, and the mode is right from the first byte.
  const draft = `${path}.${randomUUID()}`
  try {
    const file = await open(draft, 'wx', 0o600)
    await file.writeFile(`${JSON.stringify(value)}\n`)
    await file.close()
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {}) // the first error says more
    throw error
  }
}
