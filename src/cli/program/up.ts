// `localtunnels up`.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { localOption } from './connection.ts'
import { outputWish, printingOptions } from './printing.ts'

export function addUpCommand(program: Command, actions: Actions): void {
  const up = program
    .command('up')
    .description('share all services of a configuration file')
    .addOption(
      new Option(
        '--config <file>',
        'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder); "up" reloads it when you save it',
      ).env('TUNNEL_CONFIG'),
    )
    .addOption(localOption())
  for (const option of printingOptions()) up.addOption(option.helpGroup('Options:'))
  up.action(() => {
    const flags = new Flags(up)
    return actions.up({ file: flags.text('config'), isLocal: flags.isOn('local') }, outputWish(flags))
  })
}
