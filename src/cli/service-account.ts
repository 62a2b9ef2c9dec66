// The user of a service of the machine, and the checks that no other user can run code as this one.

import { execFileSync } from 'node:child_process'
import { realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { optionInvalid } from '../errors.ts'

/** A service that root may install, and that then runs as the owner of `folder`. */
export interface MachineService {
  readonly folder: string
  /** The files that run: the runtime and the script, or the executable. */
  readonly program: readonly string[]
}

/**
 * Returns the name of the folder's owner. `undefined` for root, whose service needs a user of its own. Throws
 * `OPTION_INVALID` if others could change the program, or the service could not read it.
 */
export function accountOf({ folder, program }: MachineService): string | undefined {
  const { uid } = statSync(folder)
  const user = uid === 0 ? undefined : nameOf(uid, folder)
  for (const path of new Set([folder, ...program].flatMap(pathsOf))) check(path, statSync(path), uid, user)
  return user
}

function nameOf(uid: number, folder: string): string {
  try {
    return execFileSync('id', ['-un', String(uid)], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch (cause) {
    throw optionInvalid(`${folder} belongs to user ${uid}, who is not known here.`, {
      cause,
    })
  }
}

/** Returns the path and all folders above it, and the same for the targets of links. */
function pathsOf(path: string): readonly string[] {
  const paths: string[] = []
  for (const start of [path, realpathSync(path)])
    for (let at = start; ; at = dirname(at)) {
      paths.push(at)
      if (at === dirname(at)) break
    }
  return paths
}

function check(path: string, stats: Stats, uid: number, user: string | undefined): void {
  if (stats.uid !== 0 && stats.uid !== uid)
    throw optionInvalid(
      `${path} belongs to another user, who could change what the service runs: use a folder and a program of root, or of ${user ?? 'the user that it runs as'}.`,
    )
  // Only root is in the group of root.
  const writable = stats.mode & (stats.gid === 0 ? 0o002 : 0o022)
  if (writable !== 0) {
    // A folder such as /tmp is meant to be written by others.
    const closed = (stats.mode & 0o1000) === 0 ? `chmod go-w ${path}, or ` : ''
    throw optionInvalid(
      `Others may write to ${path}, and could change what the service runs: ${closed}use another folder.`,
    )
  }
  const isHidden = user === undefined && /^\/(?:home|root|run\/user)(?:\/|$)/.test(path)
  if (isHidden || (stats.mode & (stats.uid === uid && user !== undefined ? 0o100 : 0o011)) === 0)
    if (stats.isDirectory() || isHidden)
      throw optionInvalid(
        `A service does not run as root, and ${user ?? 'its user'} cannot read ${path}: use a folder such as /etc/localtunnels, and a program for the whole machine, or give the folder to a user (chown).`,
      )
}
