// An attacker: `attacker-process.ts NAME TARGET`. Prints `ready`, attacks from SIGUSR1 until SIGTERM, then prints `did TALLY`.

import { ATTACKS } from '../attacks/index.ts'
import type { Tally, Target } from './attack.ts'

/** An attack that does not stop by itself is left where it is. */
const STOP_MS = 500

const [name = '', text = ''] = process.argv.slice(2)
const attack = ATTACKS.find(one => one.name === name)
if (attack?.attack === undefined) throw new Error(`no attack is called ${name}`)
const target = JSON.parse(text) as Target // the runner wrote it
const tally: Tally = {}
const stop = new AbortController()

function leave(): never {
  console.log(`did ${JSON.stringify(tally)}`)
  process.exit(0)
}
process.on('SIGTERM', () => {
  stop.abort()
  setTimeout(leave, STOP_MS)
})
// What a server under attack does to its attacker is no reason for the attacker to die.
process.on('uncaughtException', () => {
  tally.errors = (tally.errors ?? 0) + 1
})
process.on('unhandledRejection', () => {
  tally.errors = (tally.errors ?? 0) + 1
})
const begun = new Promise(resolve => process.once('SIGUSR1', resolve))
console.log('ready')
await begun
await attack.attack(target, tally, stop.signal).catch(error => {
  if (!stop.signal.aborted) console.error(error)
})
if (!stop.signal.aborted) {
  // Done before its time: what was done is still held, connections for example.
  await new Promise(resolve => stop.signal.addEventListener('abort', resolve))
}
leave()
