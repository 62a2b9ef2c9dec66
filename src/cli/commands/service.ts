// `localtunnels service`: installs a command of localtunnels that starts with the machine, or when its user signs in.

import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { extensionOf, readConfigText } from '../../config/file.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { homeFolder } from '../../state-folder.ts'
import type { ServiceRequest } from '../program/service.ts'
import type { CommandIo } from '../run.ts'
import { accountOf } from '../service-account.ts'
import {
  checkName,
  checkService,
  environmentFile,
  launchdList,
  type ServiceSettings,
  systemdUnit,
} from '../service-file.ts'
import { type ServiceWords, separateSecrets } from '../service-words.ts'
import { LAUNCH_OPTIONS } from '../settings/folder-variables.ts'
import { paletteFor } from '../terminal/palette.ts'
import { checkConfig } from './config.ts'

/** The number of checks whether a new service still runs. */
const ASKS = 4
const ASK_MS = 500
/** The time in milliseconds that a command of the service manager may take. */
const MANAGER_TIMEOUT_MS = 30_000

type Environment = Readonly<Record<string, string | undefined>>

interface Manager {
  readonly path: string
  /** The file of the variables. `undefined` if they are in the file at `path`. */
  readonly variablesPath: string | undefined
  readonly text: (settings: ServiceSettings) => string
  readonly start: readonly (readonly string[])[]
  readonly stop: readonly (readonly string[])[]
  readonly status: readonly string[]
}

/** Resolves with the exit code. Rejects with `OPTION_INVALID`. */
export async function service(
  { action, name, words, isUser }: ServiceRequest,
  io: CommandIo,
): Promise<number> {
  const { environment, write } = io
  const isSystem = !isUser && process.getuid?.() === 0
  checkName(name)
  const manager = managerOf(name, isSystem, environment)
  switch (action) {
    case 'install':
      return install(manager, await settingsOf({ name, words, isSystem }, manager, io), write)
    case 'status':
      return status(manager, name, write)
    case 'remove':
      return remove(manager, name, write)
  }
}

async function settingsOf(
  { name, words, isSystem }: Pick<ServiceRequest, 'name' | 'words'> & { readonly isSystem: boolean },
  manager: Manager,
  io: CommandIo,
): Promise<ServiceSettings> {
  const separate = await separateSecrets(words.length === 0 ? ['up'] : words, io.environment)
  const [folder, { command, files }] = [process.cwd(), program()]
  const user = isSystem ? accountOf({ folder, program: files }) : undefined
  if (isSystem && user === undefined && process.platform === 'darwin')
    throw optionInvalid(
      `A service does not run as root: give ${folder} to the user that it is to run as (chown).`,
    )
  const settings: ServiceSettings = {
    name,
    kind: separate.command,
    command: [...command, ...separate.words],
    folder,
    isSystem,
    user,
    variables: separate.variables,
    variablesPath: manager.variablesPath ?? manager.path,
  }
  checkService(settings)
  await checkFile(separate, io)
  return settings
}

/** Throws the error that the command itself would: systemd restarts a service without limit if it fails at its start. */
async function checkFile({ command, file }: ServiceWords, { environment, write }: CommandIo): Promise<void> {
  if (command !== 'up' && (command !== 'server' || file === undefined)) return
  // The service does not run as the user who installs it, which may be root.
  if (file !== undefined && extensionOf(file) === '.ts') {
    const read = readConfigText(file)
    if (typeof read === 'string') return
    throw new TunnelError('CONFIG_INVALID', `${file} ${read.message}.`)
  }
  let said = ''
  const note = (text: string) => {
    said += text
  }
  const around = { environment, palette: paletteFor(false, environment), write: note }
  await checkConfig({ file, server: command === 'server' }, around).catch((error: unknown) => {
    write(said)
    throw error
  })
}

/** Returns the current program and its files. Throws `OPTION_INVALID` if that is a copy that will be deleted. */
function program(): { readonly command: readonly string[]; readonly files: readonly string[] } {
  const { execPath, argv } = process
  if ('Bun' in globalThis && Bun.isStandaloneExecutable) return { command: [execPath], files: [execPath] }
  const files = [execPath, argv[1] ?? '']
  if (files.some(file => /[/\\](?:bunx-|_npx[/\\])/.test(file)))
    throw optionInvalid(
      'bunx and npx run a copy that does not stay: install it first, see docs/installing.md.',
    )
  return { command: 'Bun' in globalThis ? [execPath, ...LAUNCH_OPTIONS, files[1]!] : files, files }
}

function managerOf(name: string, isSystem: boolean, environment: Environment): Manager {
  const home = isSystem ? '' : homeFolder()
  if (home === undefined) throw optionInvalid('This user has no home folder for the service: set HOME.')
  if (process.platform === 'darwin') {
    const label = `dev.localtunnels.${name}`
    const folder = isSystem ? '/Library/LaunchDaemons' : join(home, 'Library/LaunchAgents')
    const path = join(folder, `${label}.plist`)
    return {
      path,
      variablesPath: undefined,
      text: settings => launchdList(label, settings),
      start: [['launchctl', 'load', '-w', path]],
      stop: [['launchctl', 'unload', '-w', path]],
      status: ['launchctl', 'list', label],
    }
  }
  if (process.platform !== 'linux')
    throw optionInvalid('Services are for systemd and launchd: see docs/installing.md.')
  const config = environment.XDG_CONFIG_HOME ?? join(home, '.config')
  const folder = isSystem ? '/etc/systemd/system' : join(config, 'systemd/user')
  const systemctl = ['systemctl', ...(isSystem ? [] : ['--user'])]
  const unit = `${name}.service`
  return {
    path: join(folder, unit),
    variablesPath: join(isSystem ? '/etc' : config, 'localtunnels', `${name}.env`),
    text: systemdUnit,
    start: [
      [...systemctl, 'daemon-reload'],
      [...systemctl, 'enable', '--now', unit],
    ],
    stop: [[...systemctl, 'disable', '--now', unit]],
    status: [...systemctl, 'is-active', unit],
  }
}

async function install(manager: Manager, settings: ServiceSettings, write: CommandIo['write']) {
  const { path, variablesPath } = manager
  const hasVariables = Object.keys(settings.variables).length > 0
  if (variablesPath !== undefined) {
    // An earlier installation may have left it.
    rmSync(variablesPath, { force: true })
    if (hasVariables) writeNew(variablesPath, environmentFile(settings.variables), 0o600)
  }
  writeNew(path, manager.text(settings), variablesPath === undefined && hasVariables ? 0o600 : 0o644)
  write(`${path} is written.\n`)
  if (hasVariables) write(`${settings.variablesPath} has its variables, and only its user reads it.\n`)
  const code = await all(manager.start, write, '')
  if (code !== 0) return code
  // A command that fails at once runs for a moment, which the service manager reports as active.
  for (let asked = 0; asked < ASKS; asked++) {
    await sleep(ASK_MS)
    const state = await run(manager.status)
    if (state.code === 0) continue
    write(
      `It does not stay up (${state.text.split('\n')[0]}): ${settings.kind} ends by itself. Its log says why.\n`,
    )
    return 1
  }
  write(`It runs, and starts again with ${settings.isSystem ? 'the machine' : 'your session'}.\n`)
  return 0
}

function writeNew(path: string, text: string, mode: number): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '', { mode })
    // The mode above applies only to a new file, so it is set before the content is written.
    chmodSync(path, mode)
    writeFileSync(path, text)
  } catch (cause) {
    throw optionInvalid(`${path} cannot be written.`, { cause })
  }
}

async function status({ path, status: command }: Manager, name: string, write: CommandIo['write']) {
  if (!existsSync(path)) throw missing(name)
  const { code, text } = await run(command)
  write(`${code === 0 ? 'runs' : 'does not run'}: ${path}${text === '' ? '' : ` (${text.split('\n')[0]})`}\n`)
  return code === 0 ? 0 : 1
}

async function remove({ path, variablesPath, stop }: Manager, name: string, write: CommandIo['write']) {
  if (!existsSync(path)) throw missing(name)
  const code = await all(stop, write, 'It is stopped.\n')
  rmSync(path)
  if (variablesPath !== undefined) rmSync(variablesPath, { force: true })
  write(`${path} is removed.\n`)
  return code
}

/** Runs commands one after the other. If the service manager fails, prints the next step. */
async function all(
  commands: readonly (readonly string[])[],
  write: CommandIo['write'],
  done: string,
): Promise<number> {
  for (const [index, command] of commands.entries()) {
    const { code, text } = await run(command)
    if (code === 0) continue
    const left = commands.slice(index).map(one => `  ${one.join(' ')}\n`)
    write(
      `${text === '' ? `${command[0]} failed` : text.split('\n')[0]?.replace(/\.$/, '')}. Still to do:\n${left.join('')}`,
    )
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
    execFile(program, words, { timeout: MANAGER_TIMEOUT_MS }, (error, stdout, stderr) => {
      const isMissing = error !== null && 'code' in error && error.code === 'ENOENT'
      // A service that notifies counts as started once its tunnels are public.
      const isWaiting = error?.killed === true
      const text = isMissing
        ? `${program} is not there`
        : isWaiting
          ? `The service is not ready after ${MANAGER_TIMEOUT_MS / 1_000} s, and its log says why`
          : (stdout + stderr).trim()
      resolve({ code: error === null ? 0 : 1, text })
    }),
  )
}

function missing(name: string): TunnelError {
  return optionInvalid(`There is no service called ${name}.`)
}
