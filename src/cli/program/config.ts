// `localtunnels config check` and `config schema`.

import type { Command } from 'commander'
import { TunnelError } from '../../errors.ts'
import type { Actions } from '../actions.ts'
import type { CheckSettings } from '../commands/config.ts'

interface CheckFlags {
  readonly config?: string
  readonly server?: string | true
}

function settingsOf(file: string | undefined, { config, server }: CheckFlags): CheckSettings {
  if (file !== undefined && config !== undefined)
    throw new TunnelError('OPTION_INVALID', `The file is given twice: ${file} and --config ${config}.`)
  return { file: file ?? config, server }
}

export function addConfigCommands(program: Command, actions: Actions): void {
  const config = program
    .command('config')
    .description('check a configuration file, or print the schema that editors use for it')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
  config
    .command('check')
    .description('say what a configuration file means, or every fault in it')
    .helpOption('-h, --help', 'print this help')
    .argument('[file]', 'the file (default: localtunnels.toml, .yaml, .yml, .json or .ts in this folder)')
    .option('--config <file>', 'the same as [file]')
    .option(
      '--server [address]',
      "it is a server's file (default: what its keys say); with an address: the server of a client's file that names none",
    )
    .action((file: string | undefined, flags: CheckFlags) => actions.checkConfig(settingsOf(file, flags)))
  config
    .command('schema')
    .description('print the JSON Schema of configuration files')
    .helpOption('-h, --help', 'print this help')
    .action(() => actions.printSchema())
}
