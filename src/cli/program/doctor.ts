// `localtunnels doctor`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { appOptions, needHttps, targetOf } from './app.ts'
import { connection } from './connection.ts'
import { jsonOption } from './printing.ts'

export function addDoctorCommand(program: Command, actions: Actions): void {
  const doctor = program
    .command('doctor')
    .description('check everything a tunnel needs, and say what to do about the rest')
    .helpOption('-h, --help', 'print this help')
    .argument('[port]', 'where the app is, as above')
  for (const option of [...appOptions(), jsonOption()]) doctor.addOption(option)
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
