// The steps all peers share: start the server, then the clients, wait until each endpoint answers, stop in reverse.

import type { Child } from '../measure/children.ts'
import { answering, listening } from '../measure/ports.ts'
import type { Endpoint, Tunnel } from './peer.ts'

/** Path that every origin answers with 200, asked until a tunnel is through. */
export const PROBE_PATH = '/20'

/** An origin of this name speaks no HTTP, so that only the tunnel's port can be awaited. */
export const RAW_ORIGIN = 'raw'

function reachable(name: string, endpoint: Endpoint): Promise<void> {
  return name === RAW_ORIGIN ? listening(endpoint.port) : answering(endpoint, PROBE_PATH)
}

export interface Assembly {
  readonly server: () => Promise<readonly Child[]>
  readonly client: () => Promise<readonly Child[]>
  /** Known only when the programs run, where they choose names or ports themselves. */
  readonly endpoints: () => Readonly<Record<string, Endpoint>>
  readonly cleanup?: () => void
}

export async function assemble(assembly: Assembly): Promise<Tunnel> {
  const children: Child[] = []
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await child.stop()
    assembly.cleanup?.()
  }
  try {
    const began = performance.now()
    const server = await assembly.server()
    children.push(...server)
    const serverReady = performance.now()
    const client = await assembly.client()
    children.push(...client)
    const endpoints = assembly.endpoints()
    await Promise.all(Object.entries(endpoints).map(([name, endpoint]) => reachable(name, endpoint)))
    return {
      endpoints,
      processes: { server: server.map(({ pid }) => pid), client: client.map(({ pid }) => pid) },
      readyMs: { server: serverReady - began, client: performance.now() - serverReady },
      stop,
    }
  } catch (error) {
    const said = children.map(child => child.output()).join('\n')
    await stop()
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${said}`, { cause: error })
  }
}
