// `localtunnels up`.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { localOption } from './connection.ts'
import { jsonOption, logRateOption, outputWish, quietOption } from './printing.ts'

export function addUpCommand(program: Command, actions: Actions): void {
  const up = program
    .command('up')
    .description('share everything that a configuration file names, and follow its changes')
    .helpOption('-h, --help', 'print this help')
    .addOption(
      new Option(
        '--config <file>',
        'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder)',
      ).env('TUNNEL_CONFIG'),
    )
    .addOption(localOption())
    .addOption(jsonOption())
    .addOption(logRateOption())
    .addOption(quietOption())
  up.action(() => {
    const flags = new Flags(up)
    return actions.up({ file: flags.text('config'), isLocal: flags.isOn('local') }, outputWish(flags))
  })
}
