// Resume secrets on disk, with which a client gets its name back after it was killed: a small file for each server
// and name.
//
// A file names the process that has the name. Only when that process is gone may another one use the secret, because
// the server would give it the name at once, even if the first client is alive.

import { mkdir, readFile, rmdir, stat, unlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { TunnelError } from '../../errors.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import { privatePath, readPrivate, writePrivate } from './private-json.ts'

/** The age in milliseconds of a lock that a dead process left. A change takes milliseconds. */
const STALE_LOCK_MS = 5_000
const LOCK_PAUSE_MS = 10

/** The purpose of a secret: a name, or a port as text; with `acme`, the certificate orders of a server. */
export interface Holding {
  readonly kind: GrantedKind | 'acme'
  readonly name: string
}

interface Owner {
  readonly pid: number
  /** The time when the process started, in the system's form. Empty if unknown. Needed because pids are reused. */
  readonly startedAt: string
  /** The machine. A pid has no meaning on another machine, or in another container. */
  readonly host: string
}

interface Kept extends Owner {
  readonly resume: string
}

/** The files that clients of this process have. */
const heldHere = new Set<string>()

export class ResumeFiles {
  readonly #folder: string
  readonly #server: string
  /** The names and ports of this client. */
  readonly #held = new Set<string>()

  /** Makes the files. `server` is in the form of `serverOrigin`. */
  constructor(folder: string, server: string) {
    this.#folder = folder
    this.#server = server
  }

  /** Takes the secret that a dead process left. `undefined` if there is none. */
  async take(holding: Holding): Promise<string | undefined> {
    const path = this.#pathOf(holding)
    if (this.#held.has(path)) return undefined
    // The usual case needs no lock.
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

  /** Stores the secret after a grant. Rejects with the error of the file system. */
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
    // Already gone, possibly with its folder: no secret is left.
    await unlink(path).catch(() => {})
  }

  /** Called when the client ends without having released its names: the next one may take them. */
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

/** Reads a file. `undefined` if it is invalid: the client then requests the name without a secret, as the first time. */
async function readKept(path: string): Promise<Kept | undefined> {
  const kept = await readPrivate(path)
  return isKept(kept) ? kept : undefined
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== 'object' || value === null) return false
  const { resume, pid, startedAt, host } = value as Partial<Record<string, unknown>> // an object, as checked above
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
 * Whether the owner is alive, assumed in doubt: a wrong yes costs this client its name (it gets `name-2`), a wrong no
 * costs a live client its tunnel.
 */
async function isAlive(owner: Owner, path: string): Promise<boolean> {
  const { pid, startedAt, host } = owner
  if (host !== hostname()) return true
  if (isOwn(owner, await ownerHere())) return heldHere.has(path)
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists, and belongs to another user.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH')
  }
  const start = await startOf(pid)
  return start === undefined ? startedAt === '' : start === startedAt || startedAt === ''
}

/** Returns the start time of a process on Linux. `undefined` on other systems, and for a process that has ended (a zombie). */
async function startOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // After the name, which may contain blanks and brackets, come the state and, as the twentieth field, the start in
  // ticks since boot.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
}

/**
 * Locks a file against other processes. Resolves with the function that unlocks it. `undefined` if another process has the lock.
 */
async function lock(path: string): Promise<(() => Promise<void>) | undefined> {
  const folder = `${path}.lock`
  const endAt = performance.now() + STALE_LOCK_MS
  while (performance.now() < endAt) {
    try {
      await mkdir(folder, { mode: 0o700 })
      return () => rmdir(folder).catch(() => {}) // if another process broke it as stale, the lock is theirs
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) return undefined
    }
    const since = (await stat(folder).catch(() => undefined))?.mtimeMs
    if (since !== undefined && Date.now() - since > STALE_LOCK_MS) await rmdir(folder).catch(() => {})
    else await new Promise(resolve => setTimeout(resolve, LOCK_PAUSE_MS))
  }
  return undefined
}

/** Returns the error event of a tunnel whose secret cannot be saved. The tunnel itself continues. */
export const stateUnwritable = (cause: unknown): TunnelError =>
  new TunnelError(
    'STORE_FAILED',
    'The client cannot save the secret that keeps its name after a crash. The tunnel works without it.',
    { cause, action: 'Check the permissions of the state folder.' },
  )
