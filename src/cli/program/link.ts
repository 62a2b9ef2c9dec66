// `localtunnels link`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { timeOf } from './values.ts'

export function addLink(command: Command, actions: Actions): void {
  command
    .option('--path <path>', 'path that the link opens, with all paths below it (default: /)')
    .option('--for <time>', 'lifetime of the link, such as 2h, at most 30d (default: 1d)')
    .option('--once', 'the link works once, after a click on a button')
    .option('--revoke <id>', 'revoke this link instead')
    .option('--server <url>', 'server of the tunnel, if you use the name on several servers')
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
