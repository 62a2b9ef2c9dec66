// The file that makes a service manager run it: a unit of systemd, or a property list of launchd.

import { TunnelError } from '../errors.ts'
import { visible } from './terminal/format.ts'

/** What is to run, whatever runs it. */
export interface ServiceSettings {
  readonly name: string
  /** Program and words, each as it is. */
  readonly command: readonly string[]
  readonly folder: string
  /** Of the whole machine, started with it; else of this user. */
  readonly isSystem: boolean
}

/** These would stand in a file that every user of the machine reads. */
const SECRETS = /^--(?:token|password|bearer|admin-token|peer-secret)(?:=|$)/

/** Throws `OPTION_INVALID` for an invalid name, and for secrets. */
export function checkService({ name, command }: ServiceSettings): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name))
    throw new TunnelError('OPTION_INVALID', `"${visible(name)}" is no name of a service.`)
  const secret = command.find(word => SECRETS.test(word))
  if (secret !== undefined)
    throw new TunnelError(
      'OPTION_INVALID',
      `${secret.split('=')[0]} would stand in a file that others read: use localtunnels login, or a configuration file.`,
    )
  // A line of a unit ends where it ends.
  if (command.some(word => /[\n\r\0]/.test(word)))
    throw new TunnelError('OPTION_INVALID', 'A word with a line break cannot be a part of a service.')
}

export function systemdUnit({ command, folder, isSystem }: ServiceSettings): string {
  return `# Written by localtunnels service install. No secrets belong here: this file is readable.
[Unit]
Description=localtunnels
Documentation=man:localtunnels(1)
${isSystem ? 'After=network-online.target\nWants=network-online.target\n' : ''}
[Service]
ExecStart=${command.map(quoted).join(' ')}
WorkingDirectory=${folder.replaceAll('%', '%%')}
Restart=always
RestartSec=1
# Longer than the time that requests under way get at the end (30 s).
TimeoutStopSec=45
NoNewPrivileges=yes

[Install]
WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}
`
}

/** A word of a command line of systemd: neither it nor a shell reads anything into it. */
function quoted(word: string): string {
  return `"${word.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`
}

export function launchdList(label: string, { command, folder }: ServiceSettings): string {
  const words = command.map(word => `    <string>${escaped(word)}</string>\n`).join('')
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${escaped(label)}</string>
  <key>ProgramArguments</key>
  <array>
${words}  </array>
  <key>WorkingDirectory</key>
  <string>${escaped(folder)}</string>
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

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
