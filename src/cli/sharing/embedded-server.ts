// The server in this process, for this machine only, if no server was named.

import { TunnelError } from '../../errors.ts'
import type { TunnelServerOptions } from '../../server/settings/options.ts'
import { createServer, needBun, type ServerEnd } from '../ends.ts'
import { accepts } from './origin-watch.ts'

const USUAL_PORT = 8080
/** The time in milliseconds for its stop, which is short because the command has already waited for requests in progress. */
const DRAIN_TIMEOUT_MS = 500

/** The options of a command beyond the defaults. */
export type EmbeddedOptions = Pick<TunnelServerOptions, 'tcpPorts' | 'udpPorts' | 'tlsPort'>

/** Listens on 127.0.0.1, on port 8080 if it is free and on any other if not. */
export async function startEmbeddedServer(options: EmbeddedOptions = {}): Promise<ServerEnd> {
  needBun('Without --server a tunnel server runs in this process, which needs Bun, and this is Node.')
  // Browsers try <name>.localhost on ::1 first, where another program would respond in our place.
  if (await accepts({ host: '::1', port: USUAL_PORT })) return startOn(0, options)
  try {
    return await startOn(USUAL_PORT, options)
  } catch (error) {
    if (!(error instanceof TunnelError && error.code === 'PORT_IN_USE')) throw error
    return startOn(0, options)
  }
}

async function startOn(port: number, options: EmbeddedOptions): Promise<ServerEnd> {
  const server = await createServer({
    ...options,
    port,
    // Only this address, because a tunnel for this machine must not be open to the network of a café.
    host: '127.0.0.1',
    domains: ['localhost'],
    // The server ends with its only client, so no client will return.
    limits: { drainTimeoutMs: DRAIN_TIMEOUT_MS, startupHoldMs: 0 },
  })
  await server.start()
  return server
}
