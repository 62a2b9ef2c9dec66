// `localtunnels config check` and `config schema`.

import type { Command } from 'commander'
import { optionInvalid } from '../../errors.ts'
import type { Actions } from '../actions.ts'
import type { CheckSettings } from '../commands/config.ts'

interface CheckFlags {
  readonly config?: string
  readonly server?: string | true
}

function settingsOf(file: string | undefined, { config, server }: CheckFlags): CheckSettings {
  if (file !== undefined && config !== undefined)
    throw optionInvalid(`The file is given twice: ${file} and --config ${config}.`)
  return { file: file ?? config, server }
}

export function addConfig(config: Command, actions: Actions): void {
  config
    .helpCommand(false)
    .command('check')
    .description('print the settings of a configuration file, or every fault in it')
    .argument('[file]', 'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder)')
    .option('--config <file>', 'another way to name the file')
    .option(
      '--server [address]',
      "check the file as a server's (default: decided by its keys); with an address: the server to use for a client's file that names none",
    )
    .action((file: string | undefined, flags: CheckFlags) => actions.checkConfig(settingsOf(file, flags)))
  config
    .command('schema')
    .description('print the JSON Schema of configuration files, for editors')
    .action(() => actions.printSchema())
}
