// `localtunnels service` and what is below it.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import type { ServiceRequest } from '../commands/service.ts'

const ACTIONS: readonly (readonly [action: ServiceRequest['action'], description: string])[] = [
  [
    'install',
    'run "up", or the words behind --, from this folder, with the machine or (not as root) with this user',
  ],
  ['status', 'whether it runs'],
  ['remove', 'stop it, and forget it'],
]

export function addServiceCommand(program: Command, actions: Actions): void {
  const service = program
    .command('service')
    .description('keep tunnels or a server running, by systemd or launchd')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
  for (const [action, description] of ACTIONS) {
    const command = service
      .command(action)
      .description(description)
      .helpOption('-h, --help', 'print this help')
      .addOption(
        new Option('--name <name>', 'what it is called').env('TUNNEL_SERVICE_NAME').default('localtunnels'),
      )
      .addOption(new Option('--user', 'of this user, also as root').env('TUNNEL_SERVICE_USER'))
    if (action === 'install')
      command
        .usage('[options] -- [words]')
        .argument('[words...]', 'such as: server --config /etc/localtunnels/server.toml')
        .passThroughOptions()
    command.action((words: readonly string[] | object = []) => {
      const { name, user } = command.opts<{ name: string; user?: true }>()
      const request = { action, name, words: Array.isArray(words) ? words : [], isUser: user === true }
      return actions.service(request, program)
    })
  }
}
