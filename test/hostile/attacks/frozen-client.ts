// A client that is frozen (SIGSTOP): its connection stays, and nothing comes back on it.

import type { Attack, Tally } from '../scene/attack.ts'
import { ATTACKER_ADDRESS } from '../scene/attack.ts'
import type { Scene } from '../scene/scene.ts'
import { aborted, closed } from '../scene/wait.ts'
import { add, open } from '../scene/wire.ts'

/** From the request to any answer at all: the client is declared dead, and the requests that wait for it fail. */
const MOST_WAITING_MS = 16_000
/** Long enough to see that, and what happens when it thaws. */
const AT_LEAST_SECONDS = 20

/** Asks the frozen tunnel once, and waits for whatever comes. */
async function waitFor(scene: Scene, tally: Tally, until: AbortSignal): Promise<void> {
  const began = performance.now()
  const socket = await open({ port: scene.target.port, address: ATTACKER_ADDRESS, reads: false })
  const answered = new Promise<void>(resolve => socket.once('data', () => resolve()))
  socket.write(`GET /bytes/1?id=1 HTTP/1.1\r\nHost: ${scene.target.honestHost}\r\n\r\n`)
  await Promise.race([answered, closed(socket, until)])
  socket.destroy()
  tally['longest wait, ms'] = Math.max(tally['longest wait, ms'] ?? 0, Math.round(performance.now() - began))
}

export const attacks: readonly Attack[] = [
  {
    name: 'frozen-client',
    does: 'the honest client is frozen, and thaws at the end',
    minSeconds: AT_LEAST_SECONDS,
    // Who asks a frozen client fails: what counts is how soon, that memory stays, and that it works when it thaws.
    bounds: { failures: Number.POSITIVE_INFINITY, p99Ms: Number.POSITIVE_INFINITY },
    async stage(scene, tally, until) {
      scene.client.signal('SIGSTOP')
      add(tally, 'frozen')
      await waitFor(scene, tally, until)
      // The rest of the time it stays frozen.
      await aborted(until)
      scene.client.signal('SIGCONT')
    },
    judge: ({ tally }) =>
      (tally['longest wait, ms'] ?? 0) > MOST_WAITING_MS
        ? [`a request waited for ${tally['longest wait, ms']} ms, above ${MOST_WAITING_MS}`]
        : [],
  },
]
