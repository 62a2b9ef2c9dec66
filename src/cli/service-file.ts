// The file for a service manager: a unit of systemd, or a property list of launchd.

import { optionInvalid } from '../errors.ts'
import { visible } from './terminal/format.ts'

export interface ServiceSettings {
  readonly name: string
  /** The command of the service, such as `up` or `server`. */
  readonly kind: string
  /** The program and its words, unchanged and without secrets. */
  readonly command: readonly string[]
  readonly folder: string
  /** Whether the service belongs to the machine, and starts with it; otherwise it belongs to this user. */
  readonly isSystem: boolean
  /** The user of a service of the machine. `undefined`: a user that systemd makes for it. */
  readonly user: string | undefined
  /** The variables of the service, in a file that only root, or the user, can read. */
  readonly variables: Readonly<Record<string, string>>
  readonly variablesPath: string
}

/** Throws `OPTION_INVALID` for an invalid name. */
export function checkName(name: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw optionInvalid(`"${visible(name)}" is not a valid name of a service.`)
}

/** Throws `OPTION_INVALID` for text that a unit would read as something else. */
export function checkService({ command, folder, variables }: ServiceSettings): void {
  // Line breaks would begin another line of the unit.
  if ([...command, ...Object.values(variables)].some(word => CONTROL.test(word)))
    throw optionInvalid('A word with a line break cannot be a part of a service.')
  if (/["'\\]/.test(command[0] ?? ''))
    throw optionInvalid(`systemd runs no program whose path has quotes: ${command[0]}.`)
  // systemd removes spaces at the end, joins lines at a backslash, and cannot quote these everywhere.
  if (CONTROL.test(folder) || /["\\]|\s$/.test(folder))
    throw optionInvalid(
      `The name of the folder "${visible(folder)}" is not valid for a service: rename it, without line breaks, quotes and backslashes.`,
    )
}

const CONTROL = /[\p{Cc}]/u

/**
 * The commands that notify when they serve. A server also names the process that continues; a client on Node notifies
 * through another process.
 */
const NOTIFYING: ReadonlySet<string> = new Set([
  'server',
  'localtunnels',
  'http',
  'tcp',
  'udp',
  'tls',
  'run',
  'up',
])

/** The limits that every service manager of a user can set without rights of root. */
const USER_LIMITS = `NoNewPrivileges=yes
UMask=0077
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM`

/** The further limits of packaging/systemd/localtunnels.service. A test compares them. */
const SYSTEM_LIMITS = `LimitNOFILE=65536
PrivateDevices=yes
PrivateTmp=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes`

/** The right to ports below 1024, and no other right of root. */
const BIND = 'CAP_NET_BIND_SERVICE'

export function systemdUnit(settings: ServiceSettings): string {
  const { name, kind, command, folder, isSystem, user, variables, variablesPath } = settings
  const isServer = kind === 'server'
  const service = [
    ...(NOTIFYING.has(kind) ? ['Type=notify', `NotifyAccess=${isServer ? 'main' : 'all'}`] : []),
    `ExecStart=${command.map(quoted).join(' ')}`,
    `WorkingDirectory=${folder.replaceAll('%', '%%')}`,
    ...(Object.keys(variables).length > 0 ? [`EnvironmentFile=${variablesPath.replaceAll('%', '%%')}`] : []),
    'Restart=always',
    'RestartSec=1',
    '# Longer than the time that open requests get at the end (30 s).',
    'TimeoutStopSec=45',
    ...(isSystem ? machineLines(name, user, isServer) : []),
    // The program that `run` starts is the user's own.
    ...(kind === 'run' ? ['NoNewPrivileges=yes'] : [USER_LIMITS]),
  ]
  return `# Written by localtunnels service install. No secrets belong here: this file is readable.
[Unit]
Description=localtunnels
Documentation=man:localtunnels(1)
${isSystem ? 'After=network-online.target\nWants=network-online.target\n' : ''}
[Service]
${service.join('\n')}

[Install]
WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}
`
}

function machineLines(name: string, user: string | undefined, isServer: boolean): readonly string[] {
  const account =
    user === undefined
      ? [
          'DynamicUser=yes',
          // Only for this service: systemd gives the folder to its user.
          `StateDirectory=localtunnels-service-${name}`,
          'StateDirectoryMode=0700',
          `Environment=XDG_STATE_HOME=/var/lib/localtunnels-service-${name}`,
          'ProtectHome=yes',
          'ProtectSystem=strict',
        ]
      : // Its login, its state and the files of its folder are where the user's other commands look for them.
        [`User=${user}`, 'ProtectSystem=full']
  return [
    ...account,
    ...(isServer ? [`AmbientCapabilities=${BIND}`] : []),
    `CapabilityBoundingSet=${isServer ? BIND : ''}`,
    SYSTEM_LIMITS,
  ]
}

/**
 * Quotes a word for a command line of systemd, so that neither systemd nor a shell interprets it. The program itself
 * keeps its `$`.
 */
function quoted(word: string, index: number): string {
  const escaped = word.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')
  return `"${index === 0 ? escaped : escaped.replaceAll('$', '$$$$')}"`
}

export function environmentFile(variables: ServiceSettings['variables']): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}="${value.replace(/[\\"`$]/g, '\\$&')}"\n`)
    .join('')
}

/** Returns the plist. With variables, only its user may read it, because launchd has no other place for them. */
export function launchdList(
  label: string,
  { command, folder, user, variables }: Omit<ServiceSettings, 'variablesPath'>,
): string {
  const words = command.map(word => `    <string>${escaped(word)}</string>\n`).join('')
  const given = Object.entries(variables).map(([name, value]) => pair('    ', name, value))
  const environment =
    given.length === 0 ? '' : `  <key>EnvironmentVariables</key>\n  <dict>\n${given.join('')}  </dict>\n`
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${escaped(label)}</string>
  <key>ProgramArguments</key>
  <array>
${words}  </array>
${pair('  ', 'WorkingDirectory', folder)}${user === undefined ? '' : pair('  ', 'UserName', user)}${environment}  <key>Umask</key>
  <integer>63</integer>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ExitTimeOut</key>
  <integer>45</integer>
</dict>
</plist>
`
}

function pair(indent: string, key: string, value: string): string {
  return `${indent}<key>${escaped(key)}</key>\n${indent}<string>${escaped(value)}</string>\n`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
