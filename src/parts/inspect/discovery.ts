// The file with which commands of the same user find running inspectors: $XDG_RUNTIME_DIR/localtunnels/<pid>.json.

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'

export interface Found {
  readonly pid: number
  readonly url: string
  readonly token: string
  readonly startedAt: number
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Returns the folder of the files. Without XDG_RUNTIME_DIR, as on macOS and in containers, it is a folder of the
 * user's in the one for temporary files.
 */
export function runtimeFolder({ XDG_RUNTIME_DIR = '' }: Environment): string {
  if (isAbsolute(XDG_RUNTIME_DIR)) return join(XDG_RUNTIME_DIR, 'localtunnels')
  // Uses the user's number, because Bun takes the name from USER, which services and containers lack. Windows has no numbers.
  return join(tmpdir(), `localtunnels-${process.getuid?.() ?? userInfo().username}`)
}

/**
 * Writes the file. Returns a function that removes it. `undefined` if it cannot be written, or the folder belongs to
 * another user.
 */
export function announce(
  inspector: { readonly url: string; readonly token: string },
  environment: Environment,
): (() => void) | undefined {
  const folder = runtimeFolder(environment)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (!isPrivate(folder)) return undefined
    // Several clients in one process have a file each.
    const path = join(folder, `${process.pid}${suffix()}.json`)
    rmSync(path, { force: true })
    writeFileSync(path, `${JSON.stringify(inspector)}\n`, { mode: 0o600, flag: 'wx' })
    const remove = () => rmSync(path, { force: true })
    process.once('exit', remove)
    return () => {
      process.off('exit', remove)
      remove()
    }
  } catch {
    // The inspector works without the file; commands do not find it.
    return undefined
  }
}

let announced = 0

function suffix(): string {
  return announced++ === 0 ? '' : `-${announced}`
}

/** Returns the running inspectors, the last started first. Removes files of processes that are gone. */
export function findInspectors(environment: Environment): Found[] {
  const folder = runtimeFolder(environment)
  let names: string[]
  try {
    if (!isPrivate(folder)) return []
    names = readdirSync(folder)
  } catch {
    return []
  }
  const found: Found[] = []
  for (const name of names) {
    const pid = Number(/^(\d+)(?:-\d+)?\.json$/.exec(name)?.[1])
    if (!Number.isSafeInteger(pid)) continue
    const path = join(folder, name)
    if (!isAlive(pid)) rmSync(path, { force: true })
    else {
      const one = read(path)
      if (one !== undefined) found.push({ pid, ...one })
    }
  }
  return found.sort((a, b) => b.startedAt - a.startedAt)
}

function read(path: string): Omit<Found, 'pid'> | undefined {
  try {
    const { mtimeMs } = statSync(path)
    const file: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof file !== 'object' || file === null || !('url' in file) || !('token' in file)) return undefined
    const { url, token } = file
    // A token is only sent to this machine, whatever the file contains.
    if (typeof url !== 'string' || typeof token !== 'string') return undefined
    if (!/^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost):\d+$/.test(url)) return undefined
    return { url, token, startedAt: mtimeMs }
  } catch {
    return undefined
  }
}

function isPrivate(folder: string): boolean {
  const { uid, mode } = statSync(folder)
  // Windows has neither mode bits nor user numbers.
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    // There is no such process, or it belongs to another user (EPERM), who must not get the token.
    return false
  }
}
