// `localtunnels doctor`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { APP_FLAGS, needHttps, targetOf } from './app.ts'
import { connection } from './connection.ts'
import { JSON_FLAG } from './printing.ts'
import { flagOptions } from './values.ts'

export function addDoctor(doctor: Command, actions: Actions): void {
  for (const option of flagOptions({ ...APP_FLAGS, 'Output:': JSON_FLAG })) doctor.addOption(option)
  doctor.action((positional: string | undefined) => {
    const flags = new Flags(doctor)
    const isAppGiven = [positional, flags.text('port'), flags.text('serve')].some(one => one !== undefined)
    const target = targetOf(flags, positional)
    needHttps(flags, [target.options])
    const isJson = flags.isOn('json')
    const isServerGiven = flags.isTyped('server') || flags.isOn('local')
    const given = { target: isAppGiven ? target : undefined, isServerGiven, isJson }
    return actions.doctor({ ...connection(flags), ...given })
  })
}
