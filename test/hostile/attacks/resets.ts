// Connections that are reset at random moments at either end: a reset is never told as a clean end.
//
// Visitors and app are processes of Node, which share no code with the two ends of the tunnel.

import { join } from 'node:path'
import type { Attack } from '../scene/attack.ts'
import type { Scene } from '../scene/scene.ts'
import { aborted } from '../scene/wait.ts'

/** Every end of a connection that a process saw, as resets-peer.mjs counts them. */
interface Counts {
  readonly resets: number
  readonly ends: number
  readonly resetsToldAsEnds: number
  readonly endsToldAsResets: number
  readonly toldInWords: number
}

export const attacks: readonly Attack[] = [
  {
    name: 'resets',
    does: 'app and visitors reset connections at random moments, HTTP and raw, under load both ways',
    minSeconds: 20,
    // All from one address, some thousand a second; two dozen of them move bulk both ways at any time.
    server: { limits: { maxAddressRate: 0 } },
    bounds: { serverMb: 200, keptFiles: 120 },
    async stage(scene: Scene, tally, until) {
      const node = Bun.which('node')
      if (node === null) {
        tally['skipped: no node'] = 1
        return
      }
      const peer = join(import.meta.dir, '../scene/resets-peer.mjs')
      const app = await scene.addProgram([node, peer, 'app'], /^ready (\d+) (\d+)$/)
      const [http = 0, tcp = 0] = app.match?.slice(1).map(Number) ?? []
      const { tcpPort } = await scene.addClient({ subdomain: 'resets', app: http, tcp })
      const visitors = await scene.addProgram(
        [node, peer, 'visitors', `${scene.target.port}`, `${tcpPort}`, `${app.pid}`],
        /^ready$/,
      )
      await aborted(until)
      for (const { pid } of [app, visitors]) process.kill(pid, 'SIGUSR1')
      // Both have heard it before either goes.
      await Bun.sleep(100)
      await visitors.stop()
      await app.stop()
      for (const [who, end] of [
        ['visitors', visitors],
        ['app', app],
      ] as const) {
        // Its own last line.
        const counts = JSON.parse(/^counts (.*)$/m.exec(end.output())?.[1] ?? '{}') as Partial<Counts>
        for (const [name, count] of Object.entries(counts)) tally[`${who}: ${name}`] = count
      }
    },
    judge: ({ tally }) =>
      (['visitors', 'app'] as const).flatMap(who => {
        const hidden = tally[`${who}: resetsToldAsEnds`] ?? 0
        return hidden > 0 ? [`${who} were told of ${hidden} resets as clean ends`] : []
      }),
  },
]
