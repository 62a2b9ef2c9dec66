// Visitors that ask for much and stop reading: what the tunnel keeps for each of them.

import { readFileSync } from 'node:fs'
import type { Attack, Target } from '../scene/attack.ts'
import { ATTACKER_ADDRESS } from '../scene/attack.ts'
import { add, open } from '../scene/wire.ts'

const READERS = 10
const ANSWER_BYTES = 5_000_000_000
/** What may wait for one of them in the kernel buffers of server and client. Those of the app and the visitor are theirs. */
const MOST_KERNEL_MIB = 16
/** At full speed first, so that buffers have grown. */
const READING_PART = 0.2

/** Bytes that wait in sockets of the server and the client, both ways: all those at these ports but the far ends. */
function waitingMib({ port, appPort }: Target): number {
  let bytes = 0
  // Address and port of both sides in hexadecimal, then `tx_queue:rx_queue`, as proc_pid_net(5) has it.
  const row =
    /: ([0-9A-F]{8}):([0-9A-F]{4}) [0-9A-F]{8}:([0-9A-F]{4}) [0-9A-F]{2} ([0-9A-F]{8}):([0-9A-F]{8})/g
  const rows = readFileSync('/proc/net/tcp', 'latin1').matchAll(row)
  for (const [, address = '', ...numbers] of rows) {
    const [local = 0, remote = 0, sent = 0, received = 0] = numbers.map(text => Number.parseInt(text, 16))
    const isOurs = [local, remote].some(one => one === port || one === appPort)
    if (!isOurs || local === appPort || address === ATTACKER_HEX) continue
    bytes += sent + received
  }
  return bytes / 2 ** 20
}

const ATTACKER_HEX = ATTACKER_ADDRESS.split('.')
  .toReversed()
  .map(part => Number(part).toString(16).padStart(2, '0'))
  .join('')
  .toUpperCase()

export const attacks: readonly Attack[] = [
  {
    name: 'slow-readers',
    does: `${READERS} visitors that ask for 5 GB, read for a second, and then nothing`,
    async attack(target, tally, until) {
      const readers = await Promise.all(
        Array.from({ length: READERS }, async () => {
          const socket = await open({ port: target.port })
          socket.write(`GET /bytes/${ANSWER_BYTES}?id=1 HTTP/1.1\r\nHost: ${target.honestHost}\r\n\r\n`)
          add(tally, 'readers')
          return socket
        }),
      )
      await Bun.sleep(Math.min(1_000, target.seconds * 1_000 * READING_PART))
      for (const socket of readers) socket.pause()
      while (!until.aborted) {
        await Bun.sleep(100)
        const each = waitingMib(target) / READERS
        tally['kernel MiB for each'] = Math.max(tally['kernel MiB for each'] ?? 0, Math.round(each * 10) / 10)
      }
    },
    judge: ({ tally }) =>
      (tally['kernel MiB for each'] ?? 0) > MOST_KERNEL_MIB
        ? [`${tally['kernel MiB for each']} MiB of kernel buffers for each reader, above ${MOST_KERNEL_MIB}`]
        : [],
  },
]
