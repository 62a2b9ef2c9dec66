// Worker threads of the server that die under load: their jobs end, and new ones must find a new thread.

import type { Attack } from '../scene/attack.ts'

const EVERY_MS = 700

export const attacks: readonly Attack[] = [
  {
    name: 'dying-threads',
    does: 'a worker thread of the server ends, again and again',
    // What is on the thread is cut. No byte may be wrong, and the next visitors are served.
    bounds: { failures: Number.POSITIVE_INFINITY, p99Ms: 1_000 },
    async stage(scene, tally, until) {
      // Until the honest visitors are in lanes.
      await Bun.sleep(Math.min(500, EVERY_MS))
      while (!until.aborted) {
        scene.server.signal('SIGUSR1')
        await Bun.sleep(EVERY_MS)
      }
      tally['threads ended'] = scene.threadsEnded
    },
    judge: ({ tally, told }) => {
      const ended = tally['threads ended'] ?? 0
      const errors = Object.keys(told).filter(what => what.startsWith('error '))
      return ended > 0 && errors.length === 0 ? [`${ended} threads died without an error event`] : []
    },
  },
]
