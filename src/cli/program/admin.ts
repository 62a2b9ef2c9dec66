// `localtunnels admin` and its subcommands.

import { type Command, Option } from 'commander'
import { optionInvalid } from '../../errors.ts'
import type { Actions } from '../actions.ts'
import type { AdminSettings, Row } from '../commands/admin.ts'
import { flagOptions, timeOf } from './values.ts'

type Question = Omit<AdminSettings, 'url' | 'token' | 'isJson'>

/** The options of one command, in addition to the common ones. */
type Given = Readonly<Record<string, string | boolean | undefined>>

export function addAdmin(admin: Command, actions: Actions): void {
  const add = (
    usage: string,
    description: string,
    question: (word: string, given: Given) => Question,
    options: readonly Option[] = [],
  ): void => {
    const command = admin.command(usage).description(description)
    for (const option of [...options, ...accessOptions()]) command.addOption(option)
    command.action(() => {
      const [word = ''] = command.processedArgs as readonly (string | undefined)[] // each usage has at most one word
      const given = command.opts<Given>()
      return actions.admin({
        ...question(word, given),
        url: textOf(given.url),
        token: textOf(given.adminToken),
        isJson: given.json === true,
      })
    })
  }
  add('open', 'print a link to the admin page, and open it if there is a browser', () => ({
    method: 'GET',
    path: '/status',
    isPage: true,
  }))
  add('tunnels', 'list tunnels, and when their apps last responded', () => ({
    method: 'GET',
    path: '/tunnels',
    list: 'tunnels',
    columns: {
      NAME: 'name',
      STATE: 'state',
      'LAST PROVEN': 'lastProvenAt',
      REQUESTS: 'requests',
      ERRORS: 'errors',
      IN: 'bytesIn',
      OUT: 'bytesOut',
      URL: 'url',
    },
  }))
  add('close <tunnel>', 'close a tunnel; ban its name to keep it closed', name => ({
    method: 'DELETE',
    path: `/tunnels/${encodeURIComponent(name)}`,
    done: ({ closed }) => `${shown(closed)} is closed.`,
  }))
  add('probe <tunnel>', 'send the app of a tunnel a request through its client', name => ({
    method: 'POST',
    path: `/tunnels/${encodeURIComponent(name)}/probe`,
    done: ({ status, durationMs, code }) =>
      status === 0 ? `No response: ${shown(code)}.` : `${shown(status)} after ${shown(durationMs)} ms.`,
  }))
  add('clients', 'list connected clients', () => ({
    method: 'GET',
    path: '/clients',
    list: 'clients',
    columns: {
      NUMBER: 'number',
      SERVER: 'server',
      ADDRESS: 'address',
      WIRE: 'wire',
      AGENT: 'agent',
      'ROUND TRIP': row => (row.roundTripMs === undefined ? undefined : `${shown(row.roundTripMs)} ms`),
      SINCE: 'connectedAt',
      TUNNELS: row => (Array.isArray(row.tunnels) ? row.tunnels.join(' ') : ''),
    },
  }))
  add('disconnect <client>', 'disconnect a client, by its number', number => ({
    method: 'DELETE',
    path: `/clients/${encodeURIComponent(number)}`,
    done: ({ closed }) => `Client ${shown(closed)} is disconnected.`,
  }))
  add(
    'traffic',
    'list requests and bytes by time',
    (_, { by, tunnel, limit }) => ({
      method: 'GET',
      path: `/traffic?${queryOf({ by, tunnel, limit })}`,
      list: 'traffic',
      columns: { AT: 'at', REQUESTS: 'requests', ERRORS: 'errors', IN: 'bytesIn', OUT: 'bytesOut' },
    }),
    [
      new Option('--by <span>', 'minute, hour or day (default: minute)')
        .choices(['minute', 'hour', 'day'])
        .default('minute'),
      new Option('--tunnel <name>', 'count this tunnel only (default: all together)'),
      new Option('--limit <rows>', 'number of rows (default: 60)'),
    ],
  )
  add('bans', 'list banned addresses, networks and names', () => ({
    method: 'GET',
    path: '/bans',
    list: 'bans',
    columns: {
      ID: 'id',
      KIND: 'kind',
      VALUE: 'value',
      UNTIL: row => row.until ?? 'for ever',
      REASON: 'reason',
    },
  }))
  add(
    'ban <value>',
    'ban an address, a network or (with --tunnel) a name',
    (value, given) => ({
      method: 'POST',
      path: '/bans',
      body: {
        kind: given.tunnel === true ? 'tunnel' : 'address',
        value,
        reason: textOf(given.reason) ?? '',
        ...(typeof given.for === 'string' && { forSeconds: Math.ceil(timeOf(given.for, '--for') / 1_000) }),
      },
      done: ({ id, value: banned }) =>
        `${shown(banned)} is kept away. To let it in again: localtunnels admin unban ${shown(id)}`,
    }),
    [
      new Option('--tunnel', 'the value is the name of a tunnel'),
      new Option('--for <time>', 'duration of the ban, such as 2h (default: without end)'),
      new Option('--reason <text>', 'reason, shown in the list of bans'),
    ],
  )
  add('unban <id>', 'remove a ban', id => ({
    method: 'DELETE',
    path: `/bans/${encodeURIComponent(id)}`,
    done: ({ removed }) => `Ban ${shown(removed)} is removed.`,
  }))
  add('tokens', 'list client tokens; create them with "localtunnels token" or on the admin page', () => ({
    method: 'GET',
    path: '/tokens',
    list: 'tokens',
    columns: {
      NAME: 'name',
      MADE: 'createdAt',
      'LAST USED': row => row.lastUsedAt ?? 'never',
      ENDS: row => row.expiresAt ?? 'never',
      OPENS: row => scopeText(row.scope),
    },
  }))
  add('nodes', 'list the servers of the cluster', () => ({
    method: 'GET',
    path: '/nodes',
    list: 'nodes',
    none: 'The server is alone: it was started without --cluster.',
    columns: {
      ID: 'id',
      URL: 'url',
      STATE: row => (row.isSelf === true ? 'this one' : row.isReachable === true ? 'up' : 'unreachable'),
      'IN FLIGHT': 'inFlight',
      VERSION: 'version',
      CLIENTS: 'clients',
      TUNNELS: 'tunnels',
      REQUESTS: 'requests',
    },
  }))
  add('certificates', 'list the certificates of the server', () => ({
    method: 'GET',
    path: '/certificates',
    list: 'certificates',
    columns: { NAME: 'name', 'DAYS LEFT': 'daysLeft', UNTIL: 'notAfter' },
  }))
  add(
    'log',
    'list the actions of operators, newest first',
    (_, { limit }) => ({
      method: 'GET',
      path: `/audit?${queryOf({ limit })}`,
      list: 'entries',
      columns: { AT: 'at', ACTOR: 'actor', ACTION: 'action', SUBJECT: 'subject', DETAIL: 'detail' },
    }),
    [new Option('--limit <rows>', 'number of entries (default: 100)')],
  )
  add('upgrade', 'restart the server with the installed version, without refusing a connection', () => ({
    method: 'POST',
    path: '/upgrade',
    done: ({ pid }) => `Process ${shown(pid)} serves from now on; the old one finishes its open requests.`,
  }))
  add('status', 'print the counters of the server', () => ({
    method: 'GET',
    path: '/status',
    done: (answer: Row) =>
      Object.entries(answer)
        .map(([name, value]) => `${name}=${shown(value)}`)
        .join(' '),
  }))
}

function scopeText(scope: unknown): string {
  const parts = typeof scope === 'object' && scope !== null ? Object.entries(scope) : []
  return parts.length === 0
    ? 'everything'
    : parts.map(([name, value]) => `${name} ${String(value)}`).join(', ')
}

const accessOptions = (): Option[] => [
  ...flagOptions(
    {
      '': {
        '--url <url>':
          'address of the admin listener (default: of the server that you started last on this machine)',
      },
    },
    'TUNNEL_ADMIN_',
  ),
  ...flagOptions({
    '': { '--admin-token <token>': 'token of the admin listener (default: of the same server)' },
  }),
  new Option('--json', 'print JSON'),
]

/** Returns a text or a number of the API. */
function shown(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function textOf(value: string | boolean | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function queryOf(given: Given): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(given)) if (typeof value === 'string') query.set(name, value)
  return query.toString()
}

/** Parses `9090`, `127.0.0.1:9090` or `[::1]:9090`. Throws `OPTION_INVALID`. */
export function adminAddress(text: string): { readonly host?: string; readonly port: number } {
  const [, host, port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? []
  if (port === '' || Number(port) > 65_535)
    throw optionInvalid(`--admin "${text}" is neither a port nor address:port, such as 127.0.0.1:9090.`)
  return { port: Number(port), ...(host !== undefined && { host: host.replace(/^\[(.*)\]$/, '$1') }) }
}
