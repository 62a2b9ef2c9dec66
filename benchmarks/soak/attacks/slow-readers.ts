// Visitors that ask for much and read nothing of it: what the tunnel keeps for each of them.

import { readFileSync } from 'node:fs'
import type { Attack } from '../hostile/attack.ts'
import { add, open } from '../hostile/wire.ts'

const READERS = 10
const ANSWER_BYTES = 500_000_000
/** What one stream may cost in all kernel buffers on its way. */
const MOST_KERNEL_MB = 16
const PAGE_BYTES = 4_096

/** What TCP holds in the buffers of all sockets of this machine. */
function kernelMb(): number {
  const [, pages] = /^TCP:.* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'latin1')) ?? []
  return (Number(pages) * PAGE_BYTES) / 1e6
}

export const attacks: readonly Attack[] = [
  {
    name: 'slow-readers',
    does: `${READERS} visitors that ask for 500 MB and read nothing`,
    async attack(target, tally, until) {
      const before = kernelMb()
      for (let count = 0; count < READERS && !until.aborted; count++) {
        const socket = await open({ port: target.port, reads: false })
        socket.pause()
        socket.write(`GET /bytes/${ANSWER_BYTES}?id=1 HTTP/1.1\r\nHost: ${target.honestHost}\r\n\r\n`)
        add(tally, 'readers')
      }
      while (!until.aborted) {
        await Bun.sleep(100)
        const perReader = (kernelMb() - before) / READERS
        tally['kernel MB for each'] = Math.max(tally['kernel MB for each'] ?? 0, Math.round(perReader))
      }
    },
    judge: ({ tally }) =>
      (tally['kernel MB for each'] ?? 0) > MOST_KERNEL_MB
        ? [`${tally['kernel MB for each']} MB of kernel buffers for each reader, above ${MOST_KERNEL_MB}`]
        : [],
  },
]
