// Flags of `localtunnels mcp`.

import { type Command, Option } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { connection, connectionOptions } from './connection.ts'

export function addMcpCommand(program: Command, actions: Actions): void {
  const command = program.command('mcp').description('give an AI agent access to requests (docs/agents.md)')
  for (const option of connectionOptions()) command.addOption(option)
  command.addOption(
    new Option('--reveal', 'show secrets to the agent').env('TUNNEL_REVEAL').helpGroup('Agent:'),
  )
  command.action(() => {
    const flags = new Flags(command)
    return actions.mcp({ ...connection(flags), reveals: flags.isOn('reveal') })
  })
}
