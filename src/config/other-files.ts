// Recognises configuration files of other tunnels, so that they get one line instead of a fault for each key.

import { basename } from 'node:path'
import type { Fault } from './fault.ts'
import { whole } from './file.ts'
import type { TableNode } from './node.ts'

/** Keys of the top level that one tool has and localtunnels has not. Some tools need two, as one alone could be a slip. */
const MARKS: readonly { readonly tool: string; readonly keys: readonly string[]; readonly least: number }[] =
  [
    { tool: 'ngrok', keys: ['version', 'agent', 'authtoken', 'tunnels', 'endpoints', 'region'], least: 2 },
    {
      tool: 'frp',
      keys: [
        'serverAddr',
        'serverPort',
        'proxies',
        'visitors',
        'bindPort',
        'vhostHTTPPort',
        'common',
        'webServer',
      ],
      least: 1,
    },
    { tool: 'cloudflared', keys: ['ingress', 'credentials-file', 'warp-routing'], least: 1 },
    {
      tool: 'localtunnels 0.2',
      keys: ['localPort', 'localHost', 'manageHosts', 'verbose', 'secure'],
      least: 1,
    },
  ]

/** The one fault of a file that another tunnel reads; `undefined`: it is not one. */
export function otherFile({ entries }: TableNode): Fault | undefined {
  if (entries.has('services')) return undefined
  const found = MARKS.find(({ keys, least }) => keys.filter(key => entries.has(key)).length >= least)
  if (found) return faultOf(found.tool)
  return RATHOLE.some(key => entries.get(key)?.node.kind === 'table') ? faultOf('rathole') : undefined
}

/** Its only tables. In a file of localtunnels, `server` is an address. */
const RATHOLE = ['client', 'server']

/** The same for a file that is known by its name alone: its syntax is none of ours. */
export function otherName(path: string): Fault | undefined {
  return /^frp[cs].*\.ini$/i.test(basename(path)) ? faultOf('frp') : undefined
}

function faultOf(tool: string): Fault {
  return whole(
    `looks like a configuration of ${tool}: write a localtunnels.toml, as docs/configuration.md says`,
  )
}
