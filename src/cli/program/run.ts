// `localtunnels run`.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { connection, connectionOptions } from './connection.ts'
import { guardSettings, wallOptions, wayOptions } from './guard.ts'
import { subdomainOf, subdomainOption } from './names.ts'
import { repeatable } from './values.ts'

export function addRunCommand(program: Command, actions: Actions): void {
  const run = program
    .command('run')
    .description('run a command with its public URL in the environment, and share the port that it opens')
    .helpOption('-h, --help', 'print this help')
    .usage('[options] -- <command>')
    .argument('<command...>', 'such as: npm run dev')
    // Flags behind the command belong to it.
    .passThroughOptions()
  for (const option of [
    new Option('-p, --port <port>', 'port that the command opens, also its PORT (default: found out)').env(
      'TUNNEL_PORT',
    ),
    ...connectionOptions(),
    subdomainOption('APP_NAME, else a friendly one'),
    new Option('--required', 'do not run the command without a tunnel').env('TUNNEL_REQUIRED'),
    ...wayOptions(repeatable),
    ...wallOptions(repeatable),
  ])
    run.addOption(option)
  run.action((command: readonly [string, ...string[]]) => {
    const flags = new Flags(run)
    const { destination, client } = connection(flags)
    const subdomain = subdomainOf(flags)
    const guard = guardSettings(flags)
    return actions.run({
      command,
      destination,
      client: { ...client, ...(subdomain !== undefined && { subdomain }), ...(guard && { guard }) },
      port: flags.port('port', 1),
      isRequired: flags.isOn('required'),
    })
  })
}
