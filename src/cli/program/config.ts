// `localtunnels config check` and `config schema`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'

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
    .option('--server', "it is a server's file (default: what its keys say)")
    .action((file: string | undefined, { server: isServer = false }: { readonly server?: boolean }) =>
      actions.checkConfig({ file, kind: isServer ? 'server' : undefined }),
    )
  config
    .command('schema')
    .description('print the JSON Schema of configuration files')
    .helpOption('-h, --help', 'print this help')
    .action(() => actions.printSchema())
}
