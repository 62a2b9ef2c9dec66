// The server that runs in the same process when none was named: for this machine only.

import { TunnelError } from '../errors.ts'
import { createServer, type ServerEnd } from './ends.ts'
import { accepts } from './origin-watch.ts'

const USUAL_PORT = 8080
/** A local stop need not wait long: the command has waited for requests under way already. */
const DRAIN_TIMEOUT_MS = 500

/** Listens on 127.0.0.1, on port 8080 when it is free and on any other when it is not. */
export async function startEmbeddedServer(): Promise<ServerEnd> {
  // Browsers ask for <name>.localhost on ::1 first: another program there would answer in our place.
  if (await accepts({ host: '::1', port: USUAL_PORT })) return startOn(0)
  try {
    return await startOn(USUAL_PORT)
  } catch (error) {
    if (!(error instanceof TunnelError && error.code === 'PORT_IN_USE')) throw error
    return startOn(0)
  }
}

async function startOn(port: number): Promise<ServerEnd> {
  const server = await createServer({
    port,
    // Not every address: what was meant for this machine must not be open to the café's network.
    host: '127.0.0.1',
    domains: ['localhost'],
    limits: { drainTimeoutMs: DRAIN_TIMEOUT_MS },
  })
  await server.start()
  return server
}
