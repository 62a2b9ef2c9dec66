// Recognises configuration files of other tunnels, so that they get one line rather than a fault for each key.

import { basename } from 'node:path'
import type { Fault } from './fault.ts'
import { whole } from './file.ts'
import type { TableNode } from './node.ts'

/** The top-level keys that only one other tool has. Some tools need two, because a single one could be a slip. */
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

/** Returns the only fault of another tunnel's file. `undefined` if it is not one. */
export function otherFile({ entries }: TableNode): Fault | undefined {
  if (entries.has('services')) return undefined
  const found = MARKS.find(({ keys, least }) => keys.filter(key => entries.has(key)).length >= least)
  if (found) return faultOf(found.tool)
  return RATHOLE.some(key => entries.get(key)?.node.kind === 'table') ? faultOf('rathole') : undefined
}

/** The only tables of rathole. In our files, `server` is an address. */
const RATHOLE = ['client', 'server']

/** Returns the fault of a file that its name identifies, because we cannot read its syntax. */
export function otherName(path: string): Fault | undefined {
  return /^frp[cs].*\.ini$/i.test(basename(path)) ? faultOf('frp') : undefined
}

function faultOf(tool: string): Fault {
  return whole(
    `looks like a configuration of ${tool}: write a localtunnels.toml, as docs/configuration.md says`,
  )
}
