// `localtunnels run`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { connection, LASTING_FLAGS } from './connection.ts'
import { ACCESS_FLAGS, guardSettings } from './guard.ts'
import { subdomainFlag, subdomainOf } from './names.ts'
import { type FlagTexts, flagOptions } from './values.ts'

const RUN_FLAGS: FlagTexts = {
  'App:': {
    '-p, --port <port>': 'port that the command opens, also its PORT (default: detected)',
    '--required': 'do not start the command without a tunnel',
  },
  ...LASTING_FLAGS,
  'Name:': subdomainFlag('from APP_NAME, or random'),
  ...ACCESS_FLAGS,
}

export function addRun(run: Command, actions: Actions): void {
  run
    .usage('[options] -- <command>')
    // Flags after the command belong to it.
    .passThroughOptions()
  for (const option of flagOptions(RUN_FLAGS)) run.addOption(option)
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
