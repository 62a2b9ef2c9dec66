// Finds faults of a valid configuration that would otherwise appear at the start: a missing folder, a key of another
// certificate. It neither dials nor listens.

import { guardToken } from '../../client/carriers/server-address.ts'
import type { TunnelClientOptions } from '../../client/options.ts'
import type { ClientSettings } from '../../client/settings.ts'
import { pathOf } from '../../config/check.ts'
import type { ClientConfig } from '../../config/client-config.ts'
import type { ServerConfig } from '../../config/server-config.ts'
import { serverOptions } from '../../config/server-config.ts'
import type { ServiceConfig } from '../../config/service.ts'
import { ERRORS, TunnelError } from '../../errors.ts'
import { dial } from '../../sockets/dial.ts'
import { type Destination, serverOption } from '../settings/destination.ts'
import { serviceTarget } from '../settings/target.ts'
import { openTunnel } from './services.ts'

/** A fault, and the key of the file that it concerns. */
export interface Finding {
  readonly path: string
  /** The message, without a full stop. */
  readonly message: string
}

export async function rehearse(
  config: ClientConfig | ServerConfig,
  environment: Readonly<Record<string, string | undefined>>,
  destination: Destination | undefined,
): Promise<readonly Finding[]> {
  const findings =
    config.kind === 'client' ? await ofClient(config, environment, destination) : await ofServer(config)
  return findings.filter(finding => finding !== undefined)
}

async function ofClient(
  { connection, services }: ClientConfig,
  environment: Readonly<Record<string, string | undefined>>,
  destination: Destination | undefined,
): Promise<readonly (Finding | undefined)[]> {
  const server = destination && serverOption(destination, connection.ca)
  const { clientSettings } = await import('../../client/settings.ts')
  const { httpTunnel } = await import('../../client/tunnels/http-tunnel.ts')
  const { Parts } = await import('../../client/parts.ts')
  const { CLIENT_PARTS } = await import('../../tunnel-client.ts')
  const { tcpTunnel, tlsTunnel, udpTunnel } = await import('../../client/tunnels/raw-tunnel.ts')
  const { endOf } = await import('../../parts/private/client/connect.ts')
  const associate = () => {
    throw new Error('nothing is sent here')
  }
  const partsFor = (options: TunnelClientOptions) => new Parts(CLIENT_PARTS, { options, failed() {} })
  const parts = partsFor({})
  const tunnels = {
    http: (options: Parameters<typeof httpTunnel>[0]) =>
      parts.follow(httpTunnel(options, {}, dial, parts.originOf)).settings,
    tcp: (options: Parameters<typeof tcpTunnel>[0]) => tcpTunnel(options, dial),
    tls: (options: Parameters<typeof tlsTunnel>[0]) => tlsTunnel(options, dial),
    udp: (options: Parameters<typeof udpTunnel>[0]) => udpTunnel(options, associate, () => {}),
    connectTo: (options: Parameters<typeof endOf>[0]) => endOf(options, () => {}).settings,
  }
  let settings: ClientSettings | undefined
  const own = finding('', () => {
    const options = { ...connection, ...(server && { server }), token: '' }
    settings = clientSettings(options, environment, dial, parts.originOf)
    partsFor(options)
  })
  return [
    own,
    ...services.map(service =>
      finding(placeOf(service), () => {
        const { token } = openTunnel(tunnels, service, serviceTarget(service))
        if (settings !== undefined) guardToken(token, settings)
      }),
    ),
  ]
}

/** Returns the key of the file that says where the app is. */
function placeOf({ name, options }: ServiceConfig): string {
  const path = pathOf('services', name)
  return 'folder' in options ? pathOf(path, 'folder') : path
}

async function ofServer(config: ServerConfig): Promise<readonly (Finding | undefined)[]> {
  const { serverSettings } = await import('../../server/settings/settings.ts')
  const { SERVER_NAMES } = await import('../../server/settings/option-names.ts')
  const { pairFault } = await import('../../x509/pair.ts')
  const { tls } = config.options
  // The others belong to the command, which turns them into options of the server at the start.
  const own = Object.entries(serverOptions(config, {})).filter(([name]) => Object.hasOwn(SERVER_NAMES, name))
  const fault = tls && pairFault(tls.cert, tls.key)
  return [
    finding('', () => serverSettings(Object.fromEntries(own))),
    fault === undefined ? undefined : { path: 'tls', message: fault.replace(/\.$/, '') },
  ]
}

function finding(path: string, make: () => unknown): Finding | undefined {
  try {
    make()
    return undefined
  } catch (error) {
    if (!(error instanceof TunnelError)) throw error
    const { action } = ERRORS[error.code]
    const what = error.message.endsWith(action) ? error.message.slice(0, -action.length) : error.message
    return { path, message: what.trim().replace(/\.$/, '') }
  }
}
