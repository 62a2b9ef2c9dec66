// Strangers that ask whether hosts below a wildcard tunnel should have a certificate.

import type { Attack, Target } from '../hostile/attack.ts'
import { add, loops, open } from '../hostile/wire.ts'

async function check(target: Target, host: string, address?: string): Promise<boolean> {
  const socket = await open({ port: target.port, address, reads: false })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('data', bytes => resolve(bytes.toString('latin1').startsWith('HTTP/1.1 200')))
  socket.once('close', () => resolve(false))
  socket.write(`GET /tls-check?domain=${host} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
  const isKnown = await promise
  socket.destroy()
  return isKnown
}

export const attacks: readonly Attack[] = [
  {
    name: 'tls-check',
    does: 'a stranger that asks for certificates of made-up hosts below a wildcard tunnel',
    async attack(target, tally, until) {
      let next = 0
      await Promise.all([
        loops(10, until, async () => {
          const isKnown = await check(target, `made-up-${next++}.${target.honestHost}`)
          add(tally, isKnown ? 'confirmed' : 'denied')
        }),
        loops(
          1,
          until,
          async () => {
            // The proxy in front asks from its own address, for a host that its visitor wants.
            const isKnown = await check(target, `shop.${target.honestHost}`, '127.0.0.32')
            if (!until.aborted) add(tally, isKnown ? 'wanted host confirmed' : 'wanted host denied')
          },
          200,
        ),
      ])
    },
    judge: ({ tally }) =>
      (tally['wanted host denied'] ?? 0) > 0
        ? [`a host that was wanted got no certificate ${tally['wanted host denied']} times`]
        : [],
  },
]
