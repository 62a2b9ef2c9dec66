// Guesses at tokens: in the header of an upgrade, and in the messages of a client that has one.

import type { Attack, Evidence, Tally, Target } from '../scene/attack.ts'
import { HONEST_TOKEN } from '../scene/attack.ts'
import { add, Control, controlFrame, loops, send } from '../scene/wire.ts'

/** More than that from one address, and guessing costs nothing. */
const MOST_PER_SECOND = 50
/** Holds the right token, and is somewhere else. */
const HOLDER_ADDRESS = '127.0.0.31'
const HOLDER_EVERY_MS = 300

async function hold(target: Target, tally: Tally, until: AbortSignal): Promise<void> {
  await loops(
    1,
    until,
    async () => {
      try {
        const control = await Control.open(target, {
          wire: 'streams',
          token: HONEST_TOKEN,
          address: HOLDER_ADDRESS,
        })
        control.socket.destroy()
        add(tally, 'right token accepted')
      } catch {
        if (!until.aborted) add(tally, 'right token refused')
      }
    },
    HOLDER_EVERY_MS,
  )
}

function judge({ tally, seconds, told }: Evidence): string[] {
  const harms: string[] = []
  const isTold = Object.keys(told).some(what => what.startsWith('refused '))
  if (!isTold && (tally['guesses answered'] ?? 0) > 0) harms.push('guesses were refused without an event')
  const perSecond = Math.round((tally['guesses answered'] ?? 0) / seconds)
  if (perSecond > MOST_PER_SECOND)
    harms.push(`${perSecond.toLocaleString('en-US')} guesses a second were answered`)
  if ((tally['right token refused'] ?? 0) > 0)
    harms.push(`the right token was refused ${tally['right token refused']} times`)
  return harms
}

export const attacks: readonly Attack[] = [
  {
    name: 'tokens-by-header',
    does: 'one address guessing tokens, one in each upgrade',
    async attack(target, tally, until) {
      await Promise.all([
        hold(target, tally, until),
        loops(20, until, async () => {
          const refusal = await Control.open(target, {
            wire: 'streams',
            token: crypto.randomUUID(),
          }).catch(error => error as Error) // what it rejects with
          if (refusal instanceof Error && /^\d/.test(refusal.message)) add(tally, 'guesses answered')
          else add(tally, 'cut or silent')
        }),
      ])
    },
    judge,
  },
  {
    name: 'tokens-by-message',
    does: 'clients of one address guessing tokens, one in each registration',
    async attack(target, tally, until) {
      await Promise.all([
        hold(target, tally, until),
        loops(4, until, async () => {
          const control = await Control.open(target, { wire: 'streams', token: target.token })
          add(tally, 'connections')
          let waiting: (() => void) | undefined
          control.heard = ({ type }) => {
            if (type === 'refused') add(tally, 'guesses answered')
            waiting?.()
          }
          control.socket.once('close', () => waiting?.())
          for (let ref = 1; !until.aborted && control.isOpen; ref++) {
            const answered = new Promise<void>(resolve => {
              waiting = resolve
            })
            const guess = {
              type: 'register',
              ref,
              kind: 'http',
              name: `guess-${ref}`,
              token: crypto.randomUUID(),
            }
            if (!(await send(control.socket, controlFrame(guess), until))) break
            await Promise.race([answered, Bun.sleep(1_000)])
          }
          control.socket.destroy()
        }),
      ])
    },
    judge,
  },
]
