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
    .description('create, list, rotate and revoke client tokens')
    .helpCommand(false)
  const add = (
    action: TokenSettings['action'],
    description: string,
    options: readonly Option[],
    scope: (flags: Flags) => Pick<TokenSettings, 'scope' | 'forMs'>,
  ): void => {
    const command = token.command(action).description(description)
    if (action !== 'list') command.argument('<name>', 'name of the token')
    for (const option of [...options, ...COMMON()]) command.addOption(option)
    command.action(() => {
      const [name = ''] = command.processedArgs as readonly (string | undefined)[] // at most one, a text
      const flags = new Flags(command)
      const file = flags.text('tokensDb')
      return actions.token({ action, name, file, isJson: flags.isOn('json'), ...scope(flags) })
    })
  }
  add('add', 'create a token, and show it once', scopeOptions(), flags => ({
    scope: scopeOf(flags),
    forMs: flags.text('for') === undefined ? undefined : timeOf(flags.text('for') ?? '', '--for'),
  }))
  const nothing = () => ({ scope: {}, forMs: undefined })
  add('list', 'list all tokens, without their secrets', [], nothing)
  add('rotate', 'replace the secret of a token; the old secret stops working', [], nothing)
  add('revoke', 'revoke a token; its tunnels close within a second', [], nothing)
}

const COMMON = (): readonly Option[] => [
  new Option(
    '--tokens-db <file>',
    'file of the tokens, the same as for "localtunnels server" (default: tokens.db in the state folder)',
  ).env('TUNNEL_SERVER_TOKENS_DB'),
  new Option('--json', 'print JSON'),
]

const scopeOptions = (): readonly Option[] => [
  repeatable(
    '--names <pattern>',
    'subdomains that the token may use, such as shop or team-*; repeatable (default: all)',
  ),
  repeatable(
    '--kinds <kind>',
    'kinds of tunnels that it may open: http, tcp, udp or tls; repeatable (default: all)',
  ),
  repeatable('--hosts <pattern>', 'custom domains that it may use; repeatable (default: none)'),
  new Option('--tcp-ports <ports>', 'public TCP ports that it may use (default: all of the server)'),
  new Option('--udp-ports <ports>', 'public UDP ports that it may use (default: all of the server)'),
  new Option('--max-tunnels <count>', 'maximum number of open tunnels'),
  new Option('--max-clients <count>', 'maximum number of connected clients'),
  new Option('--max-ports <count>', 'maximum number of open public ports'),
  new Option(
    '--rate <limit>',
    'limit of requests or connections to all its tunnels together, such as 600/1m',
  ),
  new Option(
    '--bandwidth <size>',
    'limit of bytes per second to all its tunnels together, in each direction, such as 10MB',
  ),
  new Option('--require-guard', 'refuse tunnels without access control'),
  new Option('--reserve', 'reserve its --names for this token, even while no client uses them'),
  new Option('--for <time>', 'lifetime of the token, such as 30d (default: until you revoke it)'),
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
