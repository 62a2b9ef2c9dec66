// Load before the first figure. A tunnel serves for days: what a runtime compiles in its first seconds is no part of them.

import { interrupted } from '../measure/children.ts'
import type { Tunnel } from '../peers/peer.ts'
import { run } from './load.ts'

/** Enough for every tunnel here to be compiled. */
export const WARM_UP_SECONDS = 3

export async function warmUp(tunnels: Iterable<Tunnel>, seconds: number): Promise<void> {
  for (const tunnel of tunnels) {
    if (interrupted.aborted) return
    // Few visitors may go another way than many.
    for (const connections of [50, 4])
      await run(tunnel.endpoints.files!, { kind: 'closed', path: '/20', connections, seconds })
  }
}
