// The folder in which a program stores what outlives it, as the system defines it.

import { accessSync, constants, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the state folder. `undefined` if nothing can be written there, as for a service without a home folder. */
export function stateFolder(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  const folder = stateFolderOf(environment, platform)
  if (folder === undefined) return undefined
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK)
    return folder
  } catch {
    // The folder is read-only, or belongs to another user. A tunnel works without it.
    return undefined
  }
}

/**
 * Returns the home folder. `undefined` if this user has none, as in a container that got only a user number. A
 * relative path would mean the current folder, so it is ignored.
 */
export function homeFolder(): string | undefined {
  try {
    const home = homedir()
    return isAbsolute(home) ? home : undefined
  } catch {
    return undefined // no HOME, and no entry in the table of users
  }
}

/**
 * Returns the state folder by the XDG base directory specification, which ignores relative paths; on other systems
 * the usual place. `undefined` without a home folder and a variable that names another place.
 */
export function stateFolderOf(
  { XDG_STATE_HOME = '', LOCALAPPDATA = '' }: Environment,
  platform: NodeJS.Platform,
): string | undefined {
  if (isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, 'localtunnels')
  if (platform === 'win32' && LOCALAPPDATA) return join(LOCALAPPDATA, 'localtunnels', 'state')
  const home = homeFolder()
  if (home === undefined) return undefined
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'localtunnels', 'state')
  if (platform === 'win32') return join(home, 'AppData', 'Local', 'localtunnels', 'state')
  return join(home, '.local', 'state', 'localtunnels')
}
