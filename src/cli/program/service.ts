// `localtunnels service` and its subcommands.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'

/** The task of a subcommand of `service`. */
export interface ServiceRequest {
  readonly action: 'install' | 'status' | 'remove'
  readonly name: string
  /** The command that the service runs, in the words of the command line. */
  readonly words: readonly string[]
  readonly isUser: boolean
}

const ACTIONS: readonly (readonly [action: ServiceRequest['action'], description: string])[] = [
  [
    'install',
    'install and start a service that runs "localtunnels up", or the words after --, in this folder (systemd or launchd); as root it starts with the machine, otherwise with your session',
  ],
  ['status', 'print whether the service runs; exit code 0 if it does'],
  ['remove', 'stop and remove the service'],
]

export function addService(service: Command, actions: Actions): void {
  service.helpCommand(false)
  for (const [action, description] of ACTIONS) {
    const command = service
      .command(action)
      .description(description)
      .addOption(
        new Option('--name <name>', 'name of the service (default: localtunnels)')
          .env('TUNNEL_SERVICE_NAME')
          .default('localtunnels'),
      )
      .addOption(new Option('--user', 'a service of this user, even for root').env('TUNNEL_SERVICE_USER'))
    if (action === 'install')
      command
        .usage('[options] -- [words]')
        .argument('[words...]', 'such as: server --config /etc/localtunnels/server.toml')
        .passThroughOptions()
    command.action((words: readonly string[] | object = []) => {
      const { name, user } = command.opts<{ name: string; user?: true }>()
      const request = { action, name, words: Array.isArray(words) ? words : [], isUser: user === true }
      return actions.service(request)
    })
  }
}
