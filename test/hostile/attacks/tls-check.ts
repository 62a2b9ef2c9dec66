// Strangers that ask whether hosts below a wildcard tunnel should have a certificate.

import type { Attack, Target } from '../scene/attack.ts'
import { add, loops, open } from '../scene/wire.ts'

/** The proxy in front asks from its own address. */
const PROXY_ADDRESS = '127.0.0.32'
/** By then the stranger has asked for more hosts than one tunnel may have. */
const WANTED_AFTER_MS = 300

/** Whether a request for this host and path is answered with 200. */
async function ask(target: Target, host: string, path: string, address?: string): Promise<boolean> {
  const socket = await open({ port: target.port, address, reads: false })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('data', bytes => resolve(bytes.toString('latin1').startsWith('HTTP/1.1 200')))
  socket.once('close', () => resolve(false))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const isFine = await promise
  socket.destroy()
  return isFine
}

const check = (target: Target, host: string, address?: string): Promise<boolean> =>
  ask(target, '127.0.0.1', `/tls-check?domain=${host}`, address)

export const attacks: readonly Attack[] = [
  {
    name: 'tls-check',
    does: 'a stranger that asks for certificates of made-up hosts below a wildcard tunnel',
    async attack(target, tally, until) {
      let next = 0
      const attacking = loops(10, until, async () => {
        const isKnown = await check(target, `made-up-${next++}.${target.honestHost}`)
        add(tally, isKnown ? 'confirmed' : 'denied')
      })
      await Bun.sleep(WANTED_AFTER_MS)
      // A host that the app has an answer for.
      await ask(target, `shop.${target.honestHost}`, '/bytes/1', PROXY_ADDRESS)
      await loops(
        1,
        until,
        async () => {
          const isKnown = await check(target, `shop.${target.honestHost}`, PROXY_ADDRESS)
          if (!until.aborted) add(tally, isKnown ? 'wanted host confirmed' : 'wanted host denied')
        },
        200,
      )
      await attacking
    },
    judge: ({ tally }) =>
      (tally['wanted host denied'] ?? 0) > 0
        ? [`a host that was wanted got no certificate ${tally['wanted host denied']} times`]
        : [],
  },
]
