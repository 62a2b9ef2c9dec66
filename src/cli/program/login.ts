// `localtunnels login`, `logout` and `whoami`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { CONNECTION_FLAGS, way } from './connection.ts'
import { flagOptions } from './values.ts'

export function addLogin(login: Command, actions: Actions): void {
  login
    .option('--token-stdin', 'read the token from standard input (default: only if that is a pipe)')
    .option('--default', 'make a server with a saved token the default, and ask for nothing')
    .option('--force', 'save the token even if the server requires none')
  for (const option of flagOptions(CONNECTION_FLAGS))
    if (['proxy', 'ca', 'insecure', 'insecureToken'].includes(option.attributeName())) login.addOption(option)
  login.action((server: string) => {
    const flags = new Flags(login)
    return actions.login({
      server,
      isPiped: flags.isOn('tokenStdin'),
      isPreferred: flags.isOn('default'),
      isForced: flags.isOn('force'),
      client: way(flags),
    })
  })
}

export function addLogout(command: Command, actions: Actions): void {
  command.action((server: string | undefined) => actions.logout(server))
}

export function addWhoami(command: Command, actions: Actions): void {
  command.action(() => actions.whoami())
}
