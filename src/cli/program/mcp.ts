// Flags of `localtunnels mcp`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { Flags } from '../settings/flags.ts'
import { CONNECTION_FLAGS, connection } from './connection.ts'
import { flagOptions } from './values.ts'

export function addMcp(command: Command, actions: Actions): void {
  const texts = { ...CONNECTION_FLAGS, 'Agent:': { '--reveal': 'show secrets to the agent' } }
  for (const option of flagOptions(texts)) command.addOption(option)
  command.action(() => {
    const flags = new Flags(command)
    return actions.mcp({ ...connection(flags), reveals: flags.isOn('reveal') })
  })
}
