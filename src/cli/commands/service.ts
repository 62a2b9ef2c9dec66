// `localtunnels service`: a command of localtunnels that starts with the machine, or when its user signs in.

import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TunnelError } from '../../errors.ts'
import { checkService, launchdList, type ServiceSettings, systemdUnit } from '../service-file.ts'
import { homeFolder } from '../settings/state-folder.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface ServiceRequest {
  readonly action: 'install' | 'status' | 'remove'
  readonly name: string
  /** What it runs, in the words of the command line. */
  readonly words: readonly string[]
  readonly isUser: boolean
}

export interface ServiceDesk {
  readonly environment: Environment
  readonly write: (text: string) => void
}

/** One service manager. */
interface Manager {
  readonly path: string
  readonly text: (settings: ServiceSettings) => string
  readonly start: readonly (readonly string[])[]
  readonly stop: readonly (readonly string[])[]
  readonly status: readonly string[]
}

/** Resolves with the exit code. Rejects with `OPTION_INVALID`. */
export async function service(
  { action, name, words, isUser }: ServiceRequest,
  { environment, write }: ServiceDesk,
): Promise<number> {
  const isSystem = !isUser && process.getuid?.() === 0
  const settings: ServiceSettings = {
    name,
    command: [...program(), ...(words.length === 0 ? ['up'] : words)],
    folder: process.cwd(),
    isSystem,
  }
  checkService(settings)
  const manager = managerOf(settings, environment)
  switch (action) {
    case 'install':
      return install(manager, settings, write)
    case 'status':
      return status(manager, settings, write)
    case 'remove':
      return remove(manager, settings, write)
  }
}

/** The program as it runs now. Throws `OPTION_INVALID` when that is a copy that will be gone. */
function program(): readonly string[] {
  const [runtime = '', script = ''] = process.argv
  if ('Bun' in globalThis && Bun.isStandaloneExecutable) return [process.execPath]
  if (/[/\\](?:bunx-|_npx[/\\])/.test(script))
    throw new TunnelError(
      'OPTION_INVALID',
      'bunx and npx run a copy that does not stay: install it first, npm install --global localtunnels.',
    )
  return [runtime, script]
}

function managerOf({ name, isSystem }: ServiceSettings, environment: Environment): Manager {
  const home = isSystem ? '' : homeFolder()
  if (home === undefined)
    throw new TunnelError('OPTION_INVALID', 'This user has no home folder for the service: set HOME.')
  if (process.platform === 'darwin') {
    const label = `dev.localtunnels.${name}`
    const folder = isSystem ? '/Library/LaunchDaemons' : join(home, 'Library/LaunchAgents')
    const path = join(folder, `${label}.plist`)
    return {
      path,
      text: settings => launchdList(label, settings),
      start: [['launchctl', 'load', '-w', path]],
      stop: [['launchctl', 'unload', '-w', path]],
      status: ['launchctl', 'list', label],
    }
  }
  if (process.platform !== 'linux')
    throw new TunnelError('OPTION_INVALID', 'Services are for systemd and launchd: see docs/installing.md.')
  const config = environment.XDG_CONFIG_HOME ?? join(home, '.config')
  const folder = isSystem ? '/etc/systemd/system' : join(config, 'systemd/user')
  const systemctl = ['systemctl', ...(isSystem ? [] : ['--user'])]
  const unit = `${name}.service`
  return {
    path: join(folder, unit),
    text: systemdUnit,
    start: [
      [...systemctl, 'daemon-reload'],
      [...systemctl, 'enable', '--now', unit],
    ],
    stop: [[...systemctl, 'disable', '--now', unit]],
    status: [...systemctl, 'is-active', unit],
  }
}

async function install(manager: Manager, settings: ServiceSettings, write: ServiceDesk['write']) {
  const { path } = manager
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, manager.text(settings), { mode: 0o644 })
  } catch (cause) {
    throw new TunnelError('OPTION_INVALID', `${path} cannot be written.`, { cause })
  }
  write(`${path} is written.\n`)
  return all(manager.start, write, 'It runs, and starts again with the machine.\n')
}

async function status(
  { path, status: command }: Manager,
  { name }: ServiceSettings,
  write: ServiceDesk['write'],
) {
  if (!existsSync(path)) throw missing(name)
  const { code, text } = await run(command)
  write(`${code === 0 ? 'runs' : 'does not run'}: ${path}${text === '' ? '' : ` (${text.split('\n')[0]})`}\n`)
  return code === 0 ? 0 : 1
}

async function remove({ path, stop }: Manager, { name }: ServiceSettings, write: ServiceDesk['write']) {
  if (!existsSync(path)) throw missing(name)
  const code = await all(stop, write, 'It is stopped.\n')
  rmSync(path)
  write(`${path} is removed.\n`)
  return code
}

/** One after the other. Where the service manager does not do it, says what would. */
async function all(
  commands: readonly (readonly string[])[],
  write: ServiceDesk['write'],
  done: string,
): Promise<number> {
  for (const [index, command] of commands.entries()) {
    const { code, text } = await run(command)
    if (code === 0) continue
    const left = commands.slice(index).map(one => `  ${one.join(' ')}\n`)
    write(`${text === '' ? `${command[0]} failed` : text.split('\n')[0]}. Still to do:\n${left.join('')}`)
    return 1
  }
  write(done)
  return 0
}

function run([program = '', ...words]: readonly string[]): Promise<{
  readonly code: number
  readonly text: string
}> {
  return new Promise(resolve =>
    execFile(program, words, { timeout: 30_000 }, (error, stdout, stderr) => {
      const isMissing = error !== null && 'code' in error && error.code === 'ENOENT'
      const text = isMissing ? `${program} is not there` : (stdout + stderr).trim()
      resolve({ code: error === null ? 0 : 1, text })
    }),
  )
}

function missing(name: string): TunnelError {
  return new TunnelError('OPTION_INVALID', `There is no service called ${name}.`)
}
