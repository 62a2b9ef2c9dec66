// `localtunnels login`, `logout` and `whoami`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { CONNECTION_FLAGS, way } from './connection.ts'
import { flagOptions } from './values.ts'

export function addLoginCommands(program: Command, actions: Actions): void {
  const login = program
    .command('login')
    .description('save the token of a server, and use it by default')
    .argument('<server>', 'the server, such as tunnel.example')
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
  program
    .command('logout')
    .description('delete the saved token of a server')
    .argument('[server]', 'the server (default: your default server)')
    .action((server: string | undefined) => actions.logout(server))
  program
    .command('whoami')
    .description('list the servers with a saved token')
    .action(() => actions.whoami())
}
