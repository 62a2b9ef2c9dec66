// Where the command line keeps what should outlive it, in the place that the system has for that.

import { accessSync, constants, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** `undefined`: nothing can be written there, as where a service has no home; then nothing is kept. */
export function stateFolder(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  const folder = stateFolderOf(environment, platform)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK)
    return folder
  } catch {
    // Read-only, or not this user's. A tunnel works without.
    return undefined
  }
}

/** By the XDG base directory specification, which wants relative paths to be ignored; elsewhere as is usual there. */
export function stateFolderOf(
  { XDG_STATE_HOME = '', LOCALAPPDATA = '' }: Environment,
  platform: NodeJS.Platform,
): string {
  if (isAbsolute(XDG_STATE_HOME)) return join(XDG_STATE_HOME, 'localtunnels')
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'localtunnels', 'state')
  if (platform === 'win32')
    return join(LOCALAPPDATA || join(homedir(), 'AppData', 'Local'), 'localtunnels', 'state')
  return join(homedir(), '.local', 'state', 'localtunnels')
}
