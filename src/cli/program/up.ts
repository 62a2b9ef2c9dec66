// `localtunnels up`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { END_FLAG, LOCAL_FLAG } from './connection.ts'
import { outputWish, PRINTING_FLAGS } from './printing.ts'
import { flagOptions } from './values.ts'

const UP_FLAGS = {
  '--config <file>':
    'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder); "up" reloads it when you save it',
  ...LOCAL_FLAG,
  ...END_FLAG,
  ...PRINTING_FLAGS,
}

export function addUp(up: Command, actions: Actions): void {
  for (const option of flagOptions({ '': UP_FLAGS })) up.addOption(option)
  up.action(() => {
    const flags = new Flags(up)
    const [isLocal, endsWhenLost] = [flags.isOn('local'), flags.isOn('exitOnDisconnect')]
    return actions.up({ file: flags.text('config'), isLocal, endsWhenLost }, outputWish(flags))
  })
}
