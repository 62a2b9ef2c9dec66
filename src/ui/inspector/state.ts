// Follows the server: the list is in its order, and changes arrive as events, which are applied once a frame.

import { batch, effect } from '@preact/signals'
import type { ExchangeRow, Frame, InspectEvent } from '../../exchange.ts'
import { api, listen, Refused, Unproven } from './api.ts'
import { addFrames, forgetFrames, frames, hasNewest, readNewestFrames } from './frames.ts'
import { leaveLater, stays } from './held.ts'
import {
  connection,
  detail,
  detailFault,
  filter,
  filterFault,
  hasMore,
  isRevealed,
  isSearching,
  rows,
  rowsFilter,
  selectedId,
  session,
} from './signals.ts'

const RETRY_MS = 1_000
/** The time in milliseconds after which a slow list is shown as searching. */
const SLOW_MS = 500
let waiting: InspectEvent[] = []
let isPlanned = false
let listening = new AbortController()
let retryNow: (() => void) | undefined

/** Reads the list, and then follows it without end. */
export function follow(): void {
  effect(() => void run(filter.value))
  effect(() => {
    const [id, reveal] = [selectedId.value, isRevealed.value]
    void readDetail(id, reveal)
  })
}

/** Ends the pause before the next attempt. */
export function reconnect(): void {
  retryNow?.()
}

async function run(wanted: string): Promise<void> {
  listening.abort()
  const mine = new AbortController()
  listening = mine
  // Events of another filter.
  waiting = []
  while (!mine.signal.aborted) {
    try {
      const begun = Promise.withResolvers<void>()
      const stream = listen(wanted, mine.signal, event => {
        begun.resolve()
        if (!mine.signal.aborted) heard(event)
      })
      stream.then(begun.resolve, begun.reject)
      // The stream begins with the session. The list is read after it, so that no change is missed.
      await begun.promise
      await readList(wanted, mine.signal)
      // The request may have failed while the client was away.
      void readDetail(selectedId.peek(), isRevealed.peek())
      await stream
    } catch (error) {
      if (mine.signal.aborted) return
      if (error instanceof Refused && error.code === 'OPTION_INVALID') {
        filterFault.value = error.message
        connection.value = 'live'
        // No rows are followed, but the end of the client is noticed.
        await listen('', mine.signal, () => {}).catch(() => {})
      } else connection.value = connectionOf(error)
    }
    if (!mine.signal.aborted && connection.value === 'live') connection.value = 'lost'
    const { promise, resolve } = Promise.withResolvers<void>()
    retryNow = resolve
    const timer = setTimeout(resolve, RETRY_MS)
    await promise
    clearTimeout(timer)
  }
}

function connectionOf(fault: unknown): 'refused' | 'unproven' | 'lost' {
  if (fault instanceof Unproven) return 'unproven'
  return fault instanceof Refused && fault.code.startsWith('INSPECT_') ? 'refused' : 'lost'
}

async function readList(wanted: string, signal?: AbortSignal): Promise<void> {
  const slow = setTimeout(() => (isSearching.value = true), SLOW_MS)
  const list = await api.list(wanted, { signal }).finally(() => {
    clearTimeout(slow)
    isSearching.value = false
  })
  if (signal?.aborted === true || filter.peek() !== wanted) return
  batch(() => {
    rows.value = list.exchanges
    hasMore.value = list.hasMore
    filterFault.value = ''
    rowsFilter.value = wanted
  })
}

let readingMore: Promise<void> | undefined

/** Reads the older rows after the last one. */
export function readMore(): Promise<void> {
  readingMore ??= (async () => {
    const [wanted, last] = [filter.peek(), rows.peek().at(-1)]
    if (last === undefined || !hasMore.peek()) return
    const list = await api.list(wanted, { before: last.id })
    // Read again since, or with another filter.
    if (filter.peek() !== wanted || rows.peek().at(-1)?.id !== last.id) return
    batch(() => {
      rows.value = [...rows.peek(), ...list.exchanges]
      hasMore.value = list.hasMore
    })
  })()
    // The caller that needs them asks again.
    .catch(() => {})
    .finally(() => {
      readingMore = undefined
    })
  return readingMore
}

function heard(event: InspectEvent): void {
  waiting.push(event)
  if (isPlanned) return
  isPlanned = true
  requestAnimationFrame(() => {
    isPlanned = false
    const events = waiting
    waiting = []
    batch(() => take(events))
  })
}

function take(events: readonly InspectEvent[]): void {
  connection.value = 'live'
  const changed = new Map<string, ExchangeRow>()
  const removed = new Set<string>()
  const unmatched = new Set<string>()
  const arrived: Frame[] = []
  let isBehind = false
  for (const event of events) {
    if (event.type === 'exchange') {
      changed.set(event.exchange.id, event.exchange)
      stays(event.exchange.id)
      unmatched.delete(event.exchange.id)
    } else if (event.type === 'removed') for (const id of event.ids) removed.add(id)
    else if (event.type === 'unmatched')
      for (const id of event.ids) {
        unmatched.add(id)
        changed.delete(id)
      }
    else if (event.type === 'session') session.value = event.session
    else if (event.type === 'frame' && event.id === selectedId.value) arrived.push(event.frame)
    else if (event.type === 'behind') isBehind = true
  }
  if (leaveLater(unmatched)) unmatched.clear()
  if (changed.size > 0 || removed.size > 0 || unmatched.size > 0) {
    const oldest = hasMore.value ? Number(rows.value.at(-1)?.id ?? 0) : 0
    const kept = rows.value.flatMap(row => {
      const now = changed.get(row.id)
      changed.delete(row.id)
      return removed.has(row.id) || unmatched.has(row.id) ? [] : [now ?? row]
    })
    // Later ones have greater numbers, and come first. Those below the last row are read with `readMore`.
    const fresh = [...changed.values()]
      .filter(row => !removed.has(row.id) && Number(row.id) > oldest)
      .sort((a, b) => Number(b.id) - Number(a.id))
    rows.value = fresh.length > 0 ? [...fresh, ...kept].sort((a, b) => Number(b.id) - Number(a.id)) : kept
  }
  // The list needs both to know where to continue.
  if (isBehind || (hasMore.value && rows.value.length === 0)) void readList(filter.value).catch(() => {})
  if (arrived.length > 0) addFrames(arrived)
  // Messages may be among the missing lines.
  if (isBehind && hasNewest.value && frames.value.length > 0) void readNewestFrames()
  const id = selectedId.value
  if (id === undefined) return
  if (removed.has(id)) detailFault.value = 'gone'
  else if (
    events.some(
      event =>
        (event.type === 'exchange' && event.exchange.id === id) ||
        (event.type === 'unmatched' && event.ids.includes(id)),
    )
  )
    void readDetail(id, isRevealed.peek())
}

async function readDetail(id: string | undefined, reveal: boolean): Promise<void> {
  if (id === undefined) {
    detail.value = undefined
    return
  }
  const isOther = detail.peek()?.id !== id
  if (isOther) {
    detailFault.value = undefined
    forgetFrames()
  }
  try {
    const found = await api.detail(id, reveal)
    if (selectedId.peek() !== id) return
    batch(() => {
      detail.value = found
      detailFault.value = undefined
    })
    // Its messages arrive as events from then on. Without any, it has just become a WebSocket.
    const hasFrames = found.kind === 'websocket' || found.kind === 'sse'
    if (hasFrames && frames.peek().length === 0 && found.frames.kept > 0) await readNewestFrames()
  } catch (error) {
    if (selectedId.peek() !== id) return
    const isGone = error instanceof Refused && error.code === 'EXCHANGE_NOT_FOUND'
    // Exchanges on the page stay readable while the client is away.
    if (isGone) detailFault.value = 'gone'
    else if (isOther)
      detailFault.value = error instanceof Refused ? error.message : 'The client does not respond.'
  }
}
