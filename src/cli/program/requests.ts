// `localtunnels requests`, `replay` and `wait`.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { timeOf } from './guard.ts'
import { wholeNumber } from './values.ts'

export function addRequestCommands(program: Command, actions: Actions): void {
  const add = (
    name: string,
    description: string,
    argument: readonly [string, string],
    ...options: Option[]
  ): Command => {
    const command = program
      .command(name)
      .description(description)
      .helpOption('-h, --help', 'print this help')
      .argument(...argument)
    for (const option of [...options, ...sessionOptions()]) command.addOption(option)
    return command
  }
  const list = add(
    'requests',
    'list what came through a tunnel that runs in another terminal',
    ['[filter]', 'such as "POST /hooks status:5xx" (docs/inspector.md)'],
    new Option('-f, --follow', 'go on with what comes').env('TUNNEL_FOLLOW'),
    new Option('--limit <count>', 'at most so many (default: 20)').env('TUNNEL_LIMIT'),
  )
  list.action((filter = '') => {
    const flags = new Flags(list)
    const limit = wholeNumber(flags, 'limit') ?? 20
    return actions.requests({ filter, limit, follows: flags.isOn('follow'), ...sessionOf(flags) })
  })
  const again = add(
    'replay',
    'send a request again, to the app that it went to',
    ['<id>', 'its number, or: latest'],
    new Option('--times <count>', 'so often (default: 1)').env('TUNNEL_TIMES'),
    new Option('--edit', 'change it first, in $VISUAL or $EDITOR').env('TUNNEL_EDIT'),
    new Option('--diff', 'show what differs from the first time').env('TUNNEL_DIFF'),
    new Option('--resign', 'sign the webhook afresh (default: if its signature was valid)').env(
      'TUNNEL_RESIGN',
    ),
    new Option('--no-resign', 'send the signature that was captured').env('TUNNEL_NO_RESIGN'),
  )
  again.action((id: string) => {
    const flags = new Flags(again)
    const times = wholeNumber(flags, 'times') ?? 1
    const how = { isEdited: flags.isOn('edit'), isCompared: flags.isOn('diff') }
    const resign = flags.isOn('resign') ? true : flags.isOff('resign') ? false : undefined
    return actions.replay({ id, times, ...how, resign, ...sessionOf(flags) })
  })
  const fixture = program
    .command('fixture')
    .description('keep captured requests as files for tests')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
  const save = fixture
    .command('save')
    .description('write a captured request to a new file; deliver() of localtunnels/test sends it to an app')
    .helpOption('-h, --help', 'print this help')
    .argument('<id>', 'its number, or: latest')
    .argument('<file>', 'such as test/hooks/paid.http')
  for (const option of sessionOptions()) save.addOption(option)
  save.action((id: string, file: string) => actions.saveFixture({ id, file, ...sessionOf(new Flags(save)) }))
  const until = add(
    'wait',
    'wait until a request has come that matches',
    ['[filter]', 'such as "POST /hooks" (docs/inspector.md)'],
    new Option('--timeout <time>', 'at most so long (default: 30s)').env('TUNNEL_TIMEOUT'),
  )
  until.action((filter = '') => {
    const flags = new Flags(until)
    const timeoutMs = timeOf(flags.text('timeout') ?? '30s', flags.label('timeout'))
    return actions.wait({ filter, timeoutMs, ...sessionOf(flags) })
  })
}

const sessionOptions = (): readonly Option[] => [
  new Option('--pid <pid>', 'of which session (default: the last started)').env('TUNNEL_PID'),
  new Option('--json', 'print JSON, one line each').env('TUNNEL_JSON'),
]

function sessionOf(flags: Flags): { readonly pid: number | undefined; readonly isJson: boolean } {
  return { pid: wholeNumber(flags, 'pid'), isJson: flags.isOn('json') }
}
