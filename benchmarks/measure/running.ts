// Origins and tunnels of a suite, started together, checked, and stopped together.

import { checkTunnel } from '../ahead/check.ts'
import { type RunningOrigins, startOrigins } from '../origin/origin.ts'
import { choose } from '../peers/list.ts'
import type { Tunnel } from '../peers/peer.ts'
import { reasonOf } from './interleave.ts'
import { peersOr, say } from './suite.ts'

export interface Running {
  readonly origins: RunningOrigins
  readonly tunnels: ReadonlyMap<string, Tunnel>
  readonly versions: Readonly<Record<string, string>>
  /** Why the others are not there. */
  readonly missing: ReadonlyMap<string, string>
}

/** Starts the peers named, or those of `--peers`. One that is missing or wrong is said and left out. */
export async function startPeers(
  names: readonly string[],
  origin: 'nginx' | 'bun' = 'nginx',
): Promise<Running> {
  const origins = await startOrigins(origin)
  const tunnels = new Map<string, Tunnel>()
  const versions: Record<string, string> = {}
  const missing = new Map<string, string>()
  for (const peer of choose(peersOr(names))) {
    const detected = await peer.detect()
    const problem =
      'missing' in detected ? detected.missing : await begin(peer.name, () => peer.start(origins.ports))
    if (problem === null && 'version' in detected) versions[peer.name] = detected.version
    if (problem !== null) {
      missing.set(peer.name, problem)
      say(`${peer.name} is left out: ${problem}`)
    }
  }
  return { origins, tunnels, versions, missing }

  async function begin(name: string, start: () => Promise<Tunnel>): Promise<string | null> {
    try {
      const tunnel = await start()
      await checkTunnel(tunnel)
      tunnels.set(name, tunnel)
      return null
    } catch (error) {
      return reasonOf(error)
    }
  }
}
