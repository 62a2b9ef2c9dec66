// `localtunnels login`, `logout` and `whoami`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { connectionOptions, way } from './connection.ts'

export function addLoginCommands(program: Command, actions: Actions): void {
  const login = program
    .command('login')
    .description('keep the token of a server, and make it the default server')
    .helpOption('-h, --help', 'print this help')
    .argument('<server>', 'the server, such as tunnel.example')
    .option(
      '--token-stdin',
      'read the token from standard input (default: ask for it, unless that is a pipe)',
    )
    .option('--default', 'only make it the default: it is logged in to')
    .option('--force', 'keep the token also for a server that asks for none')
  const options = connectionOptions()
  for (const option of options)
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
    .description('forget the token of a server')
    .helpOption('-h, --help', 'print this help')
    .argument('[server]', 'the server (default: the default one)')
    .action((server: string | undefined) => actions.logout(server))
  program
    .command('whoami')
    .description('list the servers that are logged in to')
    .helpOption('-h, --help', 'print this help')
    .action(() => actions.whoami())
}
