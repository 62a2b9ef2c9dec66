// `localtunnels connect`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { connection, LASTING_FLAGS } from './connection.ts'
import { needServer } from './names.ts'
import { outputWish, PRINTING_FLAGS } from './printing.ts'
import { duration, flagOptions } from './values.ts'

const { '--local': _local, ...SERVER_FLAGS } = LASTING_FLAGS['Server connection:'] ?? {}

/** The flags with variables of their own, because `TUNNEL_PORT` is the port of an app. */
const OWN_FLAGS = {
  'This machine:': {
    '--port <port>': 'port of this machine where you find the service (default: any free port)',
    '--idle-timeout <time>': 'forget a UDP program that has been silent for this time (default: 60s)',
  },
}

export function addConnect(command: Command, actions: Actions): void {
  for (const option of [
    ...flagOptions(OWN_FLAGS, 'TUNNEL_CONNECT_'),
    ...flagOptions({ 'Server connection:': SERVER_FLAGS, 'Output:': PRINTING_FLAGS }),
  ])
    command.addOption(option)
  command.action((name: string) => {
    const flags = new Flags(command)
    const way = connection(flags)
    if (way.destination.servers.length === 0) throw needServer()
    const port = flags.port('port', 1)
    const idleTimeoutMs = duration(flags, 'idleTimeout')
    const service = {
      name,
      ...(port !== undefined && { port }),
      ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
    }
    return actions.connect({ service, ...way }, outputWish(flags))
  })
}
