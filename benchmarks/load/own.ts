// Our own generator, in a process of its own: the fallback where no other tool is installed, and for what none does.

import { join } from 'node:path'
import { finish, launch } from '../measure/children.ts'
import type { Endpoint } from '../peers/peer.ts'
import type { Load, LoadResult } from './load.ts'

const WORKER = join(import.meta.dir, 'worker.ts')

export async function own(endpoint: Endpoint, load: Load): Promise<LoadResult> {
  const { stdout, stderr, cpuSeconds } = await finish(['bun', WORKER, JSON.stringify({ endpoint, load })], {
    timeoutMs: (load.seconds + 60) * 1000,
  })
  const line = /^REPORT (.*)$/m.exec(stdout)?.[1]
  if (!line)
    throw new Error(
      `load worker: ${/^error: (.*)$/m.exec(stderr)?.[1] ?? (stderr || stdout || 'nothing printed')}`,
    )
  // Printed by worker.ts, which shares the type.
  return { ...(JSON.parse(line) as LoadResult), cpuSeconds }
}

/** Connections that have had one answer each and stay open until `release`. */
export interface Held {
  readonly connections: number
  release(): Promise<void>
}

export async function hold(endpoint: Endpoint, connections: number): Promise<Held> {
  const spec = JSON.stringify({ endpoint, load: { kind: 'held', path: '/20', connections } })
  const child = await launch(['bun', WORKER, spec], { ready: /^held (\d+)$/, deadlineMs: 30_000 })
  return { connections: Number(child.match?.[1]), release: child.stop }
}

/** Downloads that go on until `release`: what a small answer has to get past. */
export async function keepBusy(endpoint: Endpoint, path: string): Promise<{ release(): Promise<void> }> {
  const spec = JSON.stringify({ endpoint, load: { kind: 'busy', path } })
  const child = await launch(['bun', WORKER, spec], { ready: /^busy$/, deadlineMs: 30_000 })
  return { release: child.stop }
}
