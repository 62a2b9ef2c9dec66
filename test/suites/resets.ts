// Connections that their far side resets at a random moment: every one must be reported as an error, and none as an end.

import { setImmediate as turn } from 'node:timers/promises'
import type { Dial, Socket, SocketHandler } from '../../src/socket.ts'
import { type PeerServer, peerServer, reset } from '../support/peer.ts'
import { Random } from '../support/random.ts'
import { Recorder } from '../support/recorder.ts'
import type { Pair } from './socket.ts'

export type OpenPair = (tls: boolean, handler: SocketHandler) => Promise<Omit<Pair, 'events'>>

/** At once: what happens to one connection comes between what happens to others. */
const AT_ONCE = 20

/** What both sides do before the reset, each in any order and number. */
const HABITS = ['idle', 'near writes', 'far writes', 'both write'] as const

/** Resets `count` connections and returns how each went that was not told as broken. */
export async function mistakenResets(
  open: OpenPair,
  tls: boolean,
  count: number,
  seed: number,
): Promise<string[]> {
  const mistakes: string[] = []
  for (let first = 0; first < count; first += AT_ONCE) {
    const seeds = Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, index) => seed + first + index)
    const told = await Promise.all(seeds.map(one => mistakeOf(open, tls, new Random(one))))
    for (const [index, mistake] of told.entries())
      if (mistake !== undefined) mistakes.push(`seed ${seeds[index]}: ${mistake}`)
  }
  return mistakes
}

async function mistakeOf(open: OpenPair, tls: boolean, random: Random): Promise<string | undefined> {
  const near = new Recorder()
  const pair = await open(tls, near)
  const habit = random.pick(HABITS)
  const endsFirst = random.chance(0.2)
  const did: string[] = [habit]
  try {
    if (random.chance(0.3)) pair.far.pause()
    for (let turns = random.below(12); turns > 0; turns--) {
      act(pair.near, pair.far, habit, random)
      await turn()
    }
    if (endsFirst) {
      did.push('near ended')
      pair.near.end()
      for (let turns = random.below(4); turns > 0; turns--) await turn()
    }
    reset(pair.far)
    for (let turns = random.below(4); turns > 0; turns--) {
      if (!endsFirst) act(pair.near, pair.far, 'near writes', random)
      await turn()
    }
    pair.near.resume()
    await near.happened('closed')
    if (near.error !== undefined && near.count('ended') === 0) return undefined
    return `${did.join(', ')}: ${near.events.join(' ')} ${near.errorCode ?? 'without an error'}`
  } finally {
    pair.close()
  }
}

function act(near: Socket, far: Pair['far'], habit: (typeof HABITS)[number], random: Random): void {
  const size = 1 + random.below(random.chance(0.2) ? 300_000 : 3_000)
  if (habit !== 'idle' && habit !== 'far writes') near.write(new Uint8Array(size))
  if (habit !== 'idle' && habit !== 'near writes' && !far.destroyed) far.write(Buffer.alloc(size))
  if (random.chance(0.2)) near.pause()
  else if (random.chance(0.4)) near.resume()
}

/** Connections dialled to a peer that lives as long as the process. */
export function dialledPairs(dial: Dial): OpenPair {
  const servers = new Map<boolean, Promise<PeerServer>>()
  const serverFor = (tls: boolean) => {
    const server = servers.get(tls) ?? peerServer({ tls })
    servers.set(tls, server)
    return server
  }
  const openOne: OpenPair = async (tls, handler) => {
    const server = await serverFor(tls)
    const address = { host: '127.0.0.1', port: server.port, ...(tls && { tls: { verify: false } }) }
    const near = await dial(address, handler)
    const far = await server.accepted()
    return {
      near,
      far,
      close() {
        near.terminate()
        far.destroy()
      },
    }
  }
  let last: Promise<unknown> = Promise.resolve()
  return (tls, handler) => {
    // One after the other: the connection that is accepted next is the one that was dialled.
    const pair = last.then(() => openOne(tls, handler))
    last = pair
    return pair
  }
}
