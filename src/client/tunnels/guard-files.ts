// The files of a guard that outlive the process. They contain the secret that signs its sessions and links, and what
// `localtunnels link` needs to make and revoke links of a tunnel that runs in another process.

import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MAX_REVOKED } from '../../guard.ts'
import { privatePath, readPrivate, writePrivate } from './private-json.ts'

/** The guard of a tunnel whose owner chose its name. */
export interface KeptGuard {
  readonly server: string
  readonly kind: string
  readonly name: string
  /** The last URL of the tunnel. Empty before its grant. */
  readonly url: string
  readonly secret: string
  readonly hasLinks: boolean
  /** The ids of revoked links, the oldest first. */
  readonly revoked: readonly string[]
}

export class GuardFiles {
  readonly #folder: string
  readonly #server: string

  /** Makes the files. `folder` is the user's state folder. */
  constructor(folder: string, server: string) {
    this.#folder = folder
    this.#server = server
  }

  pathOf(kind: string, name: string): string {
    return privatePath(guardFolder(this.#folder), this.#server, kind, name)
  }

  /** Returns the stored values of the tunnel, or new ones. */
  async find(kind: string, name: string): Promise<KeptGuard> {
    const kept = await readGuard(this.pathOf(kind, name))
    if (kept !== undefined) return kept
    const secret = randomBytes(32).toString('base64url')
    return { server: this.#server, kind, name, url: '', secret, hasLinks: false, revoked: [] }
  }

  /** Writes the file. Rejects with the error of the file system. */
  keep(kept: KeptGuard): Promise<void> {
    return writePrivate(this.pathOf(kept.kind, kept.name), kept)
  }
}

/** Returns all stored guards, for the command line. */
export async function allGuards(
  folder: string,
): Promise<readonly { readonly path: string; readonly kept: KeptGuard }[]> {
  const names = await readdir(guardFolder(folder)).catch(() => [])
  const all = names.map(async name => {
    const path = join(guardFolder(folder), name)
    const kept = await readGuard(path)
    return kept === undefined ? [] : [{ path, kept }]
  })
  return (await Promise.all(all)).flat()
}

/** Revokes a link in the file. A running client sees the change. */
export function revokeIn(path: string, kept: KeptGuard, id: string): Promise<void> {
  const revoked = [...kept.revoked.filter(one => one !== id), id].slice(-MAX_REVOKED)
  return writePrivate(path, { ...kept, revoked })
}

const guardFolder = (folder: string): string => join(folder, 'guards')

/** Reads a guard. `undefined` for an invalid file: then a new secret is made, and sessions of the old one end. */
export async function readGuard(path: string): Promise<KeptGuard | undefined> {
  const kept = path.endsWith('.json') ? await readPrivate(path) : undefined
  return isKept(kept) ? kept : undefined
}

function isKept(value: unknown): value is KeptGuard {
  if (typeof value !== 'object' || value === null) return false
  const { server, kind, name, url, secret, hasLinks, revoked } = value as Partial<Record<string, unknown>> // an object, as checked above
  const isText = (one: unknown) => typeof one === 'string'
  return (
    [server, kind, name, url].every(isText) &&
    typeof secret === 'string' &&
    secret.length >= 32 &&
    typeof hasLinks === 'boolean' &&
    Array.isArray(revoked) &&
    revoked.every(isText)
  )
}
