// `localtunnels token` and its subcommands.

import { type Command, Option } from 'commander'
import { parseSize } from '../../config/quantity.ts'
import { optionInvalid } from '../../errors.ts'
import type { TokenScope } from '../../tokens.ts'
import type { Actions } from '../actions.ts'
import type { TokenSettings } from '../commands/token.ts'
import { Flags } from '../settings/flags.ts'
import { rateOf } from './guard.ts'
import { duration, flagOptions, given, type Texts, wholeNumber } from './values.ts'

export function addToken(token: Command, actions: Actions): void {
  token.helpCommand(false)
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
  add('add', 'create a token, and show it once', flagOptions({ '': SCOPE_FLAGS }, ''), flags => ({
    scope: scopeOf(flags),
    forMs: duration(flags, 'for'),
  }))
  const nothing = () => ({ scope: {}, forMs: undefined })
  add('list', 'list all tokens, without their secrets', [], nothing)
  add('rotate', 'replace the secret of a token; the old secret stops working', [], nothing)
  add('revoke', 'revoke a token; its tunnels close within a second', [], nothing)
}

const COMMON = (): readonly Option[] => [
  ...flagOptions(
    {
      '': {
        '--tokens-db <file>':
          'file of the tokens, the same as for "localtunnels server" (default: tokens.db in the state folder)',
      },
    },
    'TUNNEL_SERVER_',
  ),
  new Option('--json', 'print JSON'),
]

const SCOPE_FLAGS: Texts = {
  '--names <pattern>': 'subdomains that the token may use, such as shop or team-*; repeatable (default: all)',
  '--kinds <kind>':
    'kinds of tunnels that it may open: http, tcp, udp, tls or private; repeatable (default: all)',
  '--connect <pattern>':
    'private services that it connects to, such as db; without --names it then opens no tunnels; repeatable (default: none)',
  '--hosts <pattern>': 'custom domains that it may use; repeatable (default: none)',
  '--tcp-ports <ports>': 'public TCP ports that it may use (default: all of the server)',
  '--udp-ports <ports>': 'public UDP ports that it may use (default: all of the server)',
  '--max-tunnels <count>': 'maximum number of open tunnels',
  '--max-clients <count>': 'maximum number of connected clients',
  '--max-ports <count>': 'maximum number of open public ports',
  '--rate <limit>': 'limit of requests or connections to all its tunnels together, such as 600/1m',
  '--bandwidth <size>':
    'limit of bytes per second to all its tunnels together, in each direction, such as 10MB',
  '--require-guard': 'refuse tunnels without access control',
  '--reserve': 'reserve its --names for this token, even while no client uses them',
  '--for <time>': 'lifetime of the token, such as 30d (default: until you revoke it)',
}

const KINDS = ['http', 'tcp', 'udp', 'tls', 'private'] as const

function scopeOf(flags: Flags): TokenScope {
  return given({
    names: flags.list('names').map(name => name.toLowerCase()),
    kinds: flags.list('kinds').map(kindOf),
    hosts: flags.list('hosts'),
    connect: flags.list('connect').map(name => name.toLowerCase()),
    tcpPorts: flags.text('tcpPorts'),
    udpPorts: flags.text('udpPorts'),
    maxTunnels: wholeNumber(flags, 'maxTunnels'),
    maxClients: wholeNumber(flags, 'maxClients'),
    maxPorts: wholeNumber(flags, 'maxPorts'),
    rate: rateOf(flags),
    bandwidth: bandwidthOf(flags),
    requireGuard: flags.isOn('requireGuard'),
    reserve: flags.isOn('reserve'),
  })
}

function bandwidthOf(flags: Flags): number | undefined {
  const text = flags.text('bandwidth')
  const bytes = text === undefined ? undefined : parseSize(text)
  if (text === undefined || bytes !== undefined) return bytes
  throw optionInvalid(`--bandwidth "${text}" is not a size, such as 500kB or 10MB.`)
}

function kindOf(text: string): (typeof KINDS)[number] {
  const kind = KINDS.find(one => one === text)
  if (kind !== undefined) return kind
  throw optionInvalid(`--kinds "${text}" is none of http, tcp, udp, tls and private.`)
}
