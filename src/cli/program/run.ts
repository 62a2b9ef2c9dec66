// `localtunnels run`.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { connection, connectionOptions } from './connection.ts'
import { accessOptions, guardSettings } from './guard.ts'
import { under } from './help.ts'
import { subdomainOf, subdomainOption } from './names.ts'

export function addRunCommand(program: Command, actions: Actions): void {
  const run = program
    .command('run')
    .description('start a command and share the port that it opens')
    .usage('[options] -- <command>')
    .argument('<command...>', 'such as: npm run dev; it gets its public URL in PUBLIC_URL')
    // Flags behind the command belong to it.
    .passThroughOptions()
  for (const option of [
    ...under('App:', [
      new Option('-p, --port <port>', 'port that the command opens, also its PORT (default: detected)').env(
        'TUNNEL_PORT',
      ),
      new Option('--required', 'do not start the command without a tunnel').env('TUNNEL_REQUIRED'),
    ]),
    ...connectionOptions(),
    ...under('Name:', [subdomainOption('from APP_NAME, or random')]),
    ...accessOptions(),
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
