// Resume secrets on disk, so that a client that was killed gets its name back: a small file for each server and name.
//
// A file names the process that holds the name. Only when that process is gone may another one show the secret: the server
// would give it the name at once, however alive the holder is.

import { mkdir, readFile, rmdir, stat, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { TunnelError } from '../../errors.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import { privatePath, readPrivate, writePrivate } from './private-json.ts'

/** A process that died while it changed a file leaves its lock: changing takes milliseconds. */
const STALE_LOCK_MS = 5_000
const LOCK_PAUSE_MS = 10

/** The object of a secret: a name, or a port as text; with `acme` orders of a server. */
export interface Holding {
  readonly kind: GrantedKind | 'acme'
  readonly name: string
}

interface Owner {
  readonly pid: number
  /** The time when the process started, in the system's form. Empty if unknown. A pid alone is used again. */
  readonly startedAt: string
  /** A pid means nothing on another machine, or in another container. */
  readonly host: string
}

interface Kept extends Owner {
  readonly resume: string
}

/** The files that a client of this process holds. */
const heldHere = new Set<string>()

export class ResumeFiles {
  readonly #folder: string
  readonly #server: string
  /** The names and ports of this client. */
  readonly #held = new Set<string>()

  /** Makes the files. `server`: as `serverOrigin` spells it. */
  constructor(folder: string, server: string) {
    this.#folder = folder
    this.#server = server
  }

  /** The secret that a process has left which is gone; it is this one's from now on. `undefined`: there is none. */
  async take(holding: Holding): Promise<string | undefined> {
    const path = this.#pathOf(holding)
    if (this.#held.has(path)) return undefined
    // The usual case costs no lock.
    if ((await readKept(path)) === undefined) return undefined
    const unlock = await lock(path)
    if (unlock === undefined) return undefined
    try {
      const kept = await readKept(path)
      if (kept === undefined || (await isAlive(kept, path))) return undefined
      await this.#write(path, kept.resume)
      return kept.resume
    } finally {
      await unlock()
    }
  }

  /** The server has granted it to this client. Rejects with the error of the file system. */
  async keep(holding: Holding, resume: string): Promise<void> {
    await this.#write(this.#pathOf(holding), resume)
  }

  /** Removes the secret of a released name. */
  async drop(holding: Holding): Promise<void> {
    const path = this.#pathOf(holding)
    if (!this.#held.delete(path)) return
    heldHere.delete(path)
    const kept = await readKept(path)
    // Another client may have the name by now.
    if (kept === undefined || !isOwn(kept, await ownerHere()) || heldHere.has(path)) return
    // Gone already, or in a folder that is: there is nothing to keep secret.
    await unlink(path).catch(() => {})
  }

  /** The client ends without having returned what it still has: the next one may take it. */
  leave(): void {
    for (const path of this.#held) heldHere.delete(path)
    this.#held.clear()
  }

  async #write(path: string, resume: string): Promise<void> {
    this.#held.add(path)
    heldHere.add(path)
    const kept: Kept = { resume, ...(await ownerHere()) }
    await writePrivate(path, kept)
  }

  #pathOf({ kind, name }: Holding): string {
    return privatePath(this.#folder, this.#server, kind, name)
  }
}

/** Returns `undefined` for any other file: the client then requests the name without a secret, as the first time. */
async function readKept(path: string): Promise<Kept | undefined> {
  const kept = await readPrivate(path)
  return isKept(kept) ? kept : undefined
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== 'object' || value === null) return false
  const { resume, pid, startedAt, host } = value as Partial<Record<string, unknown>> // an object, as just seen
  return (
    typeof resume === 'string' &&
    typeof pid === 'number' &&
    typeof startedAt === 'string' &&
    typeof host === 'string'
  )
}

function isOwn({ pid, startedAt, host }: Owner, own: Owner): boolean {
  return pid === own.pid && startedAt === own.startedAt && host === own.host
}

async function ownerHere(): Promise<Owner> {
  return { pid: process.pid, startedAt: (await startOf(process.pid)) ?? '', host: hostname() }
}

/**
 * Whether the owner is alive. In doubt, yes: the wrong yes costs this client its name (it gets `name-2`), the wrong no costs a
 * live client its tunnel.
 */
async function isAlive(owner: Owner, path: string): Promise<boolean> {
  const { pid, startedAt, host } = owner
  if (host !== hostname()) return true
  if (isOwn(owner, await ownerHere())) return heldHere.has(path)
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it is there, and another user's.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
  const start = await startOf(pid)
  return start === undefined ? startedAt === '' : start === startedAt || startedAt === ''
}

/**
 * Returns the start time of a process on Linux. `undefined` on other systems, and for a process that is gone but for its entry
 * (a zombie).
 */
async function startOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // Behind the name, which may hold blanks and brackets: the state, and as the twentieth the start in ticks since boot.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
}

/** Keeps other processes from taking this file. Resolves with the function that unlocks it; `undefined`: another has it. */
async function lock(path: string): Promise<(() => Promise<void>) | undefined> {
  const folder = `${path}.lock`
  const endAt = performance.now() + STALE_LOCK_MS
  while (performance.now() < endAt) {
    try {
      await mkdir(folder, { mode: 0o700 })
      return () => rmdir(folder).catch(() => {}) // broken by another as stale: then it is theirs
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) return undefined
    }
    const since = (await stat(folder).catch(() => undefined))?.mtimeMs
    if (since !== undefined && Date.now() - since > STALE_LOCK_MS) await rmdir(folder).catch(() => {})
    else await new Promise(resolve => setTimeout(resolve, LOCK_PAUSE_MS))
  }
  return undefined
}

/** The error event of a tunnel whose secrets cannot be saved. The tunnel itself continues. */
export const stateUnwritable = (cause: unknown): TunnelError =>
  new TunnelError(
    'STORE_FAILED',
    'The client cannot save the secret that keeps its name after a crash. The tunnel works without it.',
    { cause, action: 'Check the permissions of the state folder.' },
  )
