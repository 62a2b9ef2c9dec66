// `localtunnels link`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { timeOf } from './guard.ts'

export function addLinkCommand(program: Command, actions: Actions): void {
  program
    .command('link')
    .description('make a link to a tunnel of yours whose guard has links, or take one back')
    .helpOption('-h, --help', 'print this help')
    .argument('<name>', 'the subdomain of the tunnel')
    .option('--path <path>', 'where the link leads, and what it opens (default: /)')
    .option('--for <time>', 'how long it works, such as 2h, at most 30d (default: 1d)')
    .option('--once', 'it works once, at the press of a button')
    .option('--revoke <id>', 'take this link back instead')
    .option('--server <url>', 'of which server, when the name is at several')
    .option('--json', 'print JSON')
    .action((name: string, given: LinkFlags) =>
      actions.link({
        name: name.toLowerCase(),
        server: given.server,
        path: given.path,
        forMs: given.for === undefined ? undefined : timeOf(given.for, '--for'),
        isOnce: given.once ?? false,
        revoke: given.revoke,
        isJson: given.json ?? false,
      }),
    )
}

interface LinkFlags {
  readonly path?: string
  readonly for?: string
  readonly once?: boolean
  readonly revoke?: string
  readonly server?: string
  readonly json?: boolean
}
