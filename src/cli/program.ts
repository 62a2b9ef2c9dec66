// The command line: every command with its flags, in the files of `program/`, and what each asks for.

import { Command } from 'commander'
import { VERSION } from '../version.ts'
import type { Actions } from './actions.ts'
import { DOCUMENTATION } from './documentation.ts'
import { addAdminCommand } from './program/admin.ts'
import { appOptions } from './program/app.ts'
import { addCompletionsCommand } from './program/completions.ts'
import { addConfigCommands } from './program/config.ts'
import { addDoctorCommand } from './program/doctor.ts'
import { addLinkCommand } from './program/link.ts'
import { addLoginCommands } from './program/login.ts'
import { addMcpCommand } from './program/mcp.ts'
import { outputWish } from './program/printing.ts'
import { addRawCommands } from './program/raw.ts'
import { addRequestCommands } from './program/requests.ts'
import { addRunCommand } from './program/run.ts'
import { addServerCommand } from './program/server.ts'
import { addServiceCommand } from './program/service.ts'
import { shareOptions, shareSettings } from './program/share.ts'
import { addTokenCommands } from './program/token.ts'
import { addUpCommand } from './program/up.ts'
import { Flags } from './settings/flags.ts'

export function createProgram(actions: Actions): Command {
  const program = new Command('localtunnels')
    .description(
      'Gives a local app a public URL. Without --server or a login: a URL that works on this machine.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    // Flags behind `server` belong to it, though the names are the same.
    .enablePositionalOptions()
    .argument('[port]', 'where the app is: 3000, host:3000, https://localhost:3000 or unix:/path')
    .addHelpText('after', HELP_END)
  for (const option of [...appOptions(), ...shareOptions()]) program.addOption(option)
  program.action((positional: string | undefined) => {
    const flags = new Flags(program)
    return actions.share(shareSettings(flags, positional), outputWish(flags))
  })

  addRawCommands(program, actions)
  addServerCommand(program, actions)
  addTokenCommands(program, actions)
  addDoctorCommand(program, actions)
  addUpCommand(program, actions)
  addRunCommand(program, actions)
  addRequestCommands(program, actions)
  addMcpCommand(program, actions)
  addLoginCommands(program, actions)
  addLinkCommand(program, actions)
  addAdminCommand(program, actions)
  addServiceCommand(program, actions)
  addConfigCommands(program, actions)
  addCompletionsCommand(program, actions)

  return program
}

const HELP_END = `
Examples:
  localtunnels 3000                                  a URL for http://localhost:3000 on this machine
  localtunnels 3000 --server tunnel.example          a public URL, through your own server
  localtunnels login tunnel.example                  asks for its token, and makes it the default server
  localtunnels run -- npm run dev                    starts the app with its URL in PUBLIC_URL, and finds its port
  localtunnels --serve ./dist                        a URL for the files in a folder
  localtunnels tcp 22 --server tunnel.example        a public port for a service that is not HTTP
  localtunnels tls 8443 --server tunnel.example      a public name for a service with a certificate of its own
  localtunnels server --domain tunnel.example --tokens-db      that server
  localtunnels up                                    all that localtunnels.toml names, over one connection
  localtunnels config check                          what localtunnels.toml means, or what is wrong with it

A variable that is empty counts as not set; 0, no and false switch a flag off.
NO_COLOR=1 prints without colours, LOCALTUNNELS_DEBUG=1 prints stack traces.

Documentation: ${DOCUMENTATION}`
