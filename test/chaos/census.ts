// What must be so once everything is well again: each name is held once, and nothing waits or is under way.

import { type Scene, SERVERS } from './scene.ts'

interface Tunnels {
  /** `server`: another server of the cluster has it. */
  readonly tunnels: readonly { readonly name: string; readonly server?: string }[]
}

interface Status {
  readonly pendingResponses: number
}

/** A server that was away finds out what it has lost with its next sign of life. */
const SETTLE_MS = 30_000

/** What is not as it must be. */
export async function census(scene: Scene): Promise<readonly string[]> {
  const until = performance.now() + SETTLE_MS
  for (;;) {
    const faults = await look(scene)
    if (faults.length === 0 || performance.now() > until) return faults
    await Bun.sleep(500)
  }
}

async function look(scene: Scene): Promise<readonly string[]> {
  const held = (await scene.ask<Tunnels>('tunnels')).flatMap(({ tunnels }) =>
    tunnels.filter(({ server }) => server === undefined).map(({ name }) => name),
  )
  const pending = (await scene.ask<Status>('status')).map(({ pendingResponses }) => pendingResponses)
  const faults = scene.names.flatMap(name => {
    const times = held.filter(one => one === name).length
    return times === 1 ? [] : [`${name} is held by ${times} servers`]
  })
  for (const [at, count] of pending.entries())
    if (count > 0) faults.push(`${count} requests are under way at ${SERVERS[at]}, which nobody asks`)
  return faults
}
