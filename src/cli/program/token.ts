// `localtunnels token` and what is below it.

import { type Command, Option } from 'commander'
import { parseSize } from '../../config/quantity.ts'
import { TunnelError } from '../../errors.ts'
import type { TokenScope } from '../../tokens.ts'
import type { Actions } from '../actions.ts'
import type { TokenSettings } from '../commands/token.ts'
import { Flags } from '../settings/flags.ts'
import { rateOf, timeOf } from './guard.ts'
import { repeatable, wholeNumber } from './values.ts'

export function addTokenCommands(program: Command, actions: Actions): void {
  const token = program
    .command('token')
    .description('make, list and take back tokens of a server with --tokens-db, while it runs')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
  const add = (
    action: TokenSettings['action'],
    description: string,
    options: readonly Option[],
    scope: (flags: Flags) => Pick<TokenSettings, 'scope' | 'forMs'>,
  ): void => {
    const command = token.command(action).description(description).helpOption('-h, --help', 'print this help')
    if (action !== 'list') command.argument('<name>', 'what the token is called')
    for (const option of [...options, ...COMMON()]) command.addOption(option)
    command.action(() => {
      const [name = ''] = command.processedArgs as readonly (string | undefined)[] // at most one, a text
      const flags = new Flags(command)
      const file = flags.text('tokensDb')
      return actions.token({ action, name, file, isJson: flags.isOn('json'), ...scope(flags) })
    })
  }
  add('add', 'make one, and show it this once', scopeOptions(), flags => ({
    scope: scopeOf(flags),
    forMs: flags.text('for') === undefined ? undefined : timeOf(flags.text('for') ?? '', '--for'),
  }))
  const nothing = () => ({ scope: {}, forMs: undefined })
  add('list', 'list them, without their secrets', [], nothing)
  add('rotate', 'another secret for the same token; the old one opens nothing from then on', [], nothing)
  add('revoke', 'take one back: its tunnels close within a second', [], nothing)
}

const COMMON = (): readonly Option[] => [
  new Option('--tokens-db <file>', 'the file (default: tokens.db in the state folder)').env(
    'TUNNEL_SERVER_TOKENS_DB',
  ),
  new Option('--json', 'print JSON'),
]

const scopeOptions = (): readonly Option[] => [
  repeatable(
    '--names <pattern>',
    'subdomain that it opens, such as shop or team-*; repeatable (default: all)',
  ),
  repeatable('--kinds <kind>', 'http, tcp, udp or tls; repeatable (default: all)'),
  repeatable('--hosts <pattern>', 'host of a customer that it opens; repeatable (default: none)'),
  new Option('--tcp-ports <ports>', 'public TCP ports that it opens'),
  new Option('--udp-ports <ports>', 'public UDP ports that it opens'),
  new Option('--max-tunnels <count>', 'tunnels at once'),
  new Option('--max-clients <count>', 'clients at once'),
  new Option('--max-ports <count>', 'public ports at once'),
  new Option('--rate <limit>', 'requests or connections of all visitors of its tunnels, such as 600/1m'),
  new Option('--bandwidth <size>', 'bytes a second, each way, of all visitors of its tunnels, such as 10MB'),
  new Option('--require-guard', 'no tunnel without a guard'),
  new Option('--reserve', 'no other token gets its --names, also while no client has them'),
  new Option('--for <time>', 'how long it works, such as 30d (default: until it is taken back)'),
]

const KINDS = ['http', 'tcp', 'udp', 'tls'] as const

function scopeOf(flags: Flags): TokenScope {
  const [names, kinds, hosts] = [flags.list('names'), flags.list('kinds'), flags.list('hosts')]
  const [tcpPorts, udpPorts] = [flags.text('tcpPorts'), flags.text('udpPorts')]
  const [maxTunnels, maxClients] = [wholeNumber(flags, 'maxTunnels'), wholeNumber(flags, 'maxClients')]
  const bandwidth = bandwidthOf(flags)
  const [maxPorts, rate] = [wholeNumber(flags, 'maxPorts'), rateOf(flags)]
  return {
    ...(names.length > 0 && { names: names.map(name => name.toLowerCase()) }),
    ...(kinds.length > 0 && { kinds: kinds.map(kindOf) }),
    ...(hosts.length > 0 && { hosts }),
    ...(tcpPorts !== undefined && { tcpPorts }),
    ...(udpPorts !== undefined && { udpPorts }),
    ...(maxTunnels !== undefined && { maxTunnels }),
    ...(maxClients !== undefined && { maxClients }),
    ...(maxPorts !== undefined && { maxPorts }),
    ...(rate && { rate }),
    ...(bandwidth !== undefined && { bandwidth }),
    ...(flags.isOn('requireGuard') && { requireGuard: true }),
    ...(flags.isOn('reserve') && { reserve: true }),
  }
}

function bandwidthOf(flags: Flags): number | undefined {
  const text = flags.text('bandwidth')
  const bytes = text === undefined ? undefined : parseSize(text)
  if (text === undefined || bytes !== undefined) return bytes
  throw new TunnelError('OPTION_INVALID', `--bandwidth "${text}" is not a size, such as 500kB or 10MB.`)
}

function kindOf(text: string): (typeof KINDS)[number] {
  const kind = KINDS.find(one => one === text)
  if (kind !== undefined) return kind
  throw new TunnelError('OPTION_INVALID', `--kinds "${text}" is none of http, tcp, udp and tls.`)
}
