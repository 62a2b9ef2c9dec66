// The commands in the groups of --help. The options of each are in `program/`, and are loaded only for the commands on the line.

import { Command } from 'commander'
import { VERSION } from '../version.ts'
import type { Actions } from './actions.ts'
import { DOCUMENTATION } from './documentation.ts'
import { LAYOUT } from './program/help.ts'
import { COMMANDS } from './words.ts'

type Add = (command: Command, actions: Actions) => void
type Row = readonly [description: string, load: () => Promise<Add>, argument?: readonly [string, string]]

const sharing = () => import('./program/share.ts')
const raw = (name: 'tcp' | 'udp' | 'tls') => async (): Promise<Add> => {
  const { addRaw } = await import('./program/raw.ts')
  return (command, actions) => addRaw(command, actions, name)
}
const requests = () => import('./program/requests.ts')
const logins = () => import('./program/login.ts')

/** The commands by their heading in --help, in order. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  'Share:': {
    http: [
      'share a web app; you can leave out the word "http"',
      async () => (await sharing()).addHttp,
      ['[port]', 'where the app is: 3000, host:3000, https://host:3000 or unix:/path (default: 3000)'],
    ],
    tcp: [
      'share a TCP service on a public port',
      raw('tcp'),
      ['<port>', 'where the service is: 5432, host:5432, unix:/path or a range of ports, 27015-27030'],
    ],
    udp: [
      'share a UDP service on a public port',
      raw('udp'),
      ['<port>', 'where the service is: 53, host:53 or a range of ports, 27015-27030'],
    ],
    tls: [
      'share a service that speaks TLS on a public name',
      raw('tls'),
      ['<port>', 'where the service is: 8443, host:8443 or unix:/path'],
    ],
    run: [
      'start a command and share the port that it opens',
      async () => (await import('./program/run.ts')).addRun,
      ['<command...>', 'such as: npm run dev; it gets its public URL in PUBLIC_URL'],
    ],
    up: ['share all services of a configuration file', async () => (await import('./program/up.ts')).addUp],
    connect: [
      'connect to a private service of another machine',
      async () => (await import('./program/connect.ts')).addConnect,
      ['<name>', 'name of the service, such as db; of a UDP service, udp:dns'],
    ],
  },
  'Inspect:': {
    requests: [
      'list the captured requests of a running tunnel',
      async () => (await requests()).addRequests,
      ['[filter]', 'such as "POST /hooks status:5xx" (docs/inspector.md)'],
    ],
    replay: [
      'send a captured request to the app again',
      async () => (await requests()).addReplay,
      ['<id>', 'number of the request, or: latest'],
    ],
    fixture: ['save captured requests as files for tests', async () => (await requests()).addFixture],
    wait: [
      'wait for a request that matches',
      async () => (await requests()).addWait,
      ['[filter]', 'such as "POST /hooks" (docs/inspector.md)'],
    ],
    mcp: [
      'give an AI agent access to requests (docs/agents.md)',
      async () => (await import('./program/mcp.ts')).addMcp,
    ],
  },
  'Connect to servers:': {
    login: [
      'save the token of a server, and use it by default',
      async () => (await logins()).addLogin,
      ['<server>', 'the server, such as tunnel.example'],
    ],
    logout: [
      'delete the saved token of a server',
      async () => (await logins()).addLogout,
      ['[server]', 'the server (default: your default server)'],
    ],
    whoami: ['list the servers with a saved token', async () => (await logins()).addWhoami],
    link: [
      'create or revoke a link to a tunnel with --links',
      async () => (await import('./program/link.ts')).addLink,
      ['<name>', 'the subdomain of the tunnel'],
    ],
  },
  'Run a server:': {
    server: ['run a tunnel server', async () => (await import('./program/server.ts')).addServer],
    token: [
      'create, list, rotate and revoke client tokens',
      async () => (await import('./program/token.ts')).addToken,
    ],
    admin: [
      'inspect and control a running server',
      async () => (await import('./program/admin.ts')).addAdmin,
    ],
    service: [
      'run tunnels or a server as a system service',
      async () => (await import('./program/service.ts')).addService,
    ],
  },
  'Troubleshoot:': {
    doctor: [
      'check app, DNS, ports, certificate and token',
      async () => (await import('./program/doctor.ts')).addDoctor,
      ['[port]', 'where the app is: 3000, host:3000, https://host:3000 or unix:/path'],
    ],
    config: [
      'check a configuration file, or print its schema',
      async () => (await import('./program/config.ts')).addConfig,
    ],
    completions: [
      'print completions for bash, zsh or fish',
      async () => (await import('./program/completions.ts')).addCompletions,
      ['<shell>', 'the shell'],
    ],
  },
}

/** Makes the command line. `words`: only commands among them get their options; `completions` needs all. Default: all. */
export async function createProgram(actions: Actions, words?: readonly string[]): Promise<Command> {
  const program = new Command('localtunnels')
    .usage('[port] [options]\n       localtunnels <command> [options]')
    .description(
      'Gives a local app a public URL, through a server that you run. Without a server, the URL works on this machine only.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .configureHelp(LAYOUT)
    // Flags after `server` belong to it, although some have the same names.
    .enablePositionalOptions()
    .argument('[port]')
    .addHelpText('after', HELP_END)
  const [first = ''] = words ?? []
  const isWhole = words === undefined || first === 'completions'
  if (isWhole || !COMMANDS.includes(first)) (await sharing()).addSharing(program, actions)
  for (const [heading, commands] of Object.entries(GROUPS)) {
    program.commandsGroup(heading)
    for (const [name, [description, load, argument]] of Object.entries(commands)) {
      const command = program.command(name).description(description)
      if (argument !== undefined) command.argument(...argument)
      if (isWhole || words.includes(name)) (await load())(command, actions)
    }
  }
  program.helpCommand('help [command]', 'print the options of a command')

  return program
}

const HELP_END = `
Examples:
  localtunnels 3000 --subdomain shop    share http://localhost:3000 as "shop"
  localtunnels run -- npm run dev       start a dev server and share it
  localtunnels tcp 22                   share SSH on a public port

Documentation: ${DOCUMENTATION}`
