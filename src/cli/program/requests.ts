// `localtunnels requests`, `replay` and `wait`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { duration, flagOptions, type Texts, wholeNumber } from './values.ts'

export function addRequests(list: Command, actions: Actions): void {
  addFlags(list, {
    '-f, --follow': 'keep printing new requests',
    '--limit <count>': 'maximum number of requests (default: 20)',
  })
  list.action((filter = '') => {
    const flags = new Flags(list)
    const limit = wholeNumber(flags, 'limit') ?? 20
    return actions.requests({ filter, limit, follows: flags.isOn('follow'), ...sessionOf(flags) })
  })
}

export function addReplay(again: Command, actions: Actions): void {
  addFlags(again, {
    '--times <count>': 'how many times to send it (default: 1)',
    '--edit': 'edit the request first, in $VISUAL or $EDITOR',
    '--diff': 'compare the new response with the captured one',
    '--resign': 'sign the webhook again (default: if its signature was valid)',
    '--no-resign': 'send the captured signature',
  })
  again.action((id: string) => {
    const flags = new Flags(again)
    const times = wholeNumber(flags, 'times') ?? 1
    const how = { isEdited: flags.isOn('edit'), isCompared: flags.isOn('diff') }
    const resign = flags.isOn('resign') ? true : flags.isOff('resign') ? false : undefined
    return actions.replay({ id, times, ...how, resign, ...sessionOf(flags) })
  })
}

export function addFixture(fixture: Command, actions: Actions): void {
  const save = fixture
    .helpCommand(false)
    .command('save')
    .description(
      'write a captured request to a new file, which deliver() of localtunnels/test sends to an app',
    )
    .argument('<id>', 'number of the request, or: latest')
    .argument('<file>', 'such as test/hooks/paid.http')
  addFlags(save, {})
  save.action((id: string, file: string) => actions.saveFixture({ id, file, ...sessionOf(new Flags(save)) }))
}

export function addWait(until: Command, actions: Actions): void {
  addFlags(until, { '--timeout <time>': 'maximum time to wait (default: 30s)' })
  until.action((filter = '') => {
    const flags = new Flags(until)
    const timeoutMs = duration(flags, 'timeout') ?? 30_000
    return actions.wait({ filter, timeoutMs, ...sessionOf(flags) })
  })
}

function addFlags(command: Command, flags: Texts): void {
  for (const option of flagOptions({ '': { ...flags, ...SESSION_FLAGS } })) command.addOption(option)
}

const SESSION_FLAGS = {
  '--pid <pid>': 'process id of the tunnel command (default: the last started)',
  '--json': 'print one JSON object per line',
}

function sessionOf(flags: Flags): { readonly pid: number | undefined; readonly isJson: boolean } {
  return { pid: wholeNumber(flags, 'pid'), isJson: flags.isOn('json') }
}
