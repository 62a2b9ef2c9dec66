// The messages of the selected exchange: the newest ones, and earlier ones on request.

import { batch, signal } from '@preact/signals'
import type { Frame } from '../../exchange.ts'
import { api, FRAMES_AT_ONCE } from './api.ts'
import { detail, selectedId } from './signals.ts'

/** The frames that are shown, without a gap. */
export const frames = signal<readonly Frame[]>([])
/** Whether the newest frames are loaded, so that new ones are appended. */
export const hasNewest = signal(true)

/** The maximum number of frames in the page. */
const MAX_FRAMES_SHOWN = 2 * FRAMES_AT_ONCE

/** The frames that arrive while the newest are being read. */
let pending: Frame[] = []
let readingNewest: Promise<void> | undefined

export function addFrames(arrived: readonly Frame[]): void {
  if (readingNewest !== undefined) pending.push(...arrived)
  else if (hasNewest.peek() && !append(arrived)) void readNewestFrames()
}

export function forgetFrames(): void {
  batch(() => {
    frames.value = []
    hasNewest.value = true
  })
}

/** Appends frames. Returns `false` if some between are missing. */
function append(arrived: readonly Frame[]): boolean {
  const shown = frames.peek()
  const next = (shown.at(-1)?.index ?? -1) + 1
  const fresh = arrived.filter(({ index }) => index >= next)
  const [first] = fresh
  if (first === undefined) return true
  if (first.index !== next) return false
  frames.value = [...shown, ...fresh].slice(-MAX_FRAMES_SHOWN)
  return true
}

async function readFrames(from: number): Promise<{ found: readonly Frame[]; total: number }> {
  const id = selectedId.peek()
  const nothing = { frames: [], total: 0 }
  if (id === undefined) return { found: [], total: 0 }
  const { frames: found, total } = await api.frames(id, Math.max(0, from)).catch(() => nothing)
  return selectedId.peek() === id ? { found, total } : { found: [], total: 0 }
}

export function readNewestFrames(): Promise<void> {
  readingNewest ??= (async () => {
    let from = (detail.peek()?.frames.total ?? 0) - FRAMES_AT_ONCE
    for (let isWhole = false; !isWhole; ) {
      pending = []
      const { found, total } = await readFrames(from)
      if (found.length === 0) return
      frames.value = found
      from = total - FRAMES_AT_ONCE
      isWhole = found.at(-1)?.index === total - 1 && append(pending)
    }
    hasNewest.value = true
  })().finally(() => {
    readingNewest = undefined
  })
  return readingNewest
}

export async function readEarlierFrames(): Promise<void> {
  const first = frames.peek()[0]?.index ?? 0
  const { found } = await readFrames(first - FRAMES_AT_ONCE)
  const earlier = found.filter(({ index }) => index < first)
  const all = [...earlier, ...frames.peek()]
  if (all.length > MAX_FRAMES_SHOWN) hasNewest.value = false
  frames.value = all.slice(0, MAX_FRAMES_SHOWN)
}
