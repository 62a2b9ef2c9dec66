// The command line: every command with its flags, in the files of `program/`, and what each asks for.

import { Command } from 'commander'
import { VERSION } from '../version.ts'
import type { Actions } from './actions.ts'
import { DOCUMENTATION } from './documentation.ts'
import { addAdminCommand } from './program/admin.ts'
import { addCompletionsCommand } from './program/completions.ts'
import { addConfigCommands } from './program/config.ts'
import { addConnectCommand } from './program/connect.ts'
import { addDoctorCommand } from './program/doctor.ts'
import { LAYOUT } from './program/help.ts'
import { addLinkCommand } from './program/link.ts'
import { addLoginCommands } from './program/login.ts'
import { addMcpCommand } from './program/mcp.ts'
import { addRawCommands } from './program/raw.ts'
import { addRequestCommands } from './program/requests.ts'
import { addRunCommand } from './program/run.ts'
import { addServerCommand } from './program/server.ts'
import { addServiceCommand } from './program/service.ts'
import { addHttpCommand, addSharing } from './program/share.ts'
import { addTokenCommands } from './program/token.ts'
import { addUpCommand } from './program/up.ts'

export function createProgram(actions: Actions): Command {
  const program = new Command('localtunnels')
    .usage('[port] [options]\n       localtunnels <command> [options]')
    .description(
      'Gives a local app a public URL, through a server that you run. Without a server, the URL works on this machine only.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp(LAYOUT)
    // Flags behind `server` belong to it, though the names are the same.
    .enablePositionalOptions()
    .argument('[port]')
    .addHelpText('after', HELP_END)
  addSharing(program, actions)

  program.commandsGroup('Share:')
  addHttpCommand(program, actions)
  addRawCommands(program, actions)
  addRunCommand(program, actions)
  addUpCommand(program, actions)
  addConnectCommand(program, actions)

  program.commandsGroup('Inspect:')
  addRequestCommands(program, actions)
  addMcpCommand(program, actions)

  program.commandsGroup('Connect to servers:')
  addLoginCommands(program, actions)
  addLinkCommand(program, actions)

  program.commandsGroup('Run a server:')
  addServerCommand(program, actions)
  addTokenCommands(program, actions)
  addAdminCommand(program, actions)
  addServiceCommand(program, actions)

  program.commandsGroup('Troubleshoot:')
  addDoctorCommand(program, actions)
  addConfigCommands(program, actions)
  addCompletionsCommand(program, actions)
  program.helpCommand('help [command]', 'print the options of a command')

  return program
}

const HELP_END = `
Examples:
  localtunnels 3000 --subdomain shop    share http://localhost:3000 as "shop"
  localtunnels run -- npm run dev       start a dev server and share it
  localtunnels tcp 22                   share SSH on a public port

Documentation: ${DOCUMENTATION}`
