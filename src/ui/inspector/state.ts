// What the page shows. The list is the server's, in its order; changes come as events and are put in once a frame.

import { batch, computed, effect, signal } from '@preact/signals'
import type {
  ExchangeDetail,
  ExchangeRow,
  Frame,
  InspectEvent,
  Session,
} from '../../client/inspect/exchange.ts'
import { api, FRAMES_AT_ONCE, listen, Refused } from './api.ts'

export type Tab = 'request' | 'answer' | 'messages' | 'compare'

export const session = signal<Session | undefined>(undefined)
export const rows = signal<readonly ExchangeRow[]>([])
/** There are older ones than the last of `rows`. */
export const hasMore = signal(false)
export const connection = signal<'loading' | 'live' | 'lost' | 'refused'>('loading')
/** The list takes long: bodies are looked at. */
export const isSearching = signal(false)
export const filter = signal('')
/** What stands in the field of the filter: a moment later it is the filter. */
export const draft = signal('')
export const filterFault = signal('')
export const selectedId = signal<string | undefined>(undefined)
export const detail = signal<ExchangeDetail | undefined>(undefined)
/** Those that are shown, without a gap: the newest ones, or those that were asked for. */
export const frames = signal<readonly Frame[]>([])
export const isRevealed = signal(false)
export const tab = signal<Tab>('request')
/** The exchange that the selected one is compared with. */
export const otherId = signal<string | undefined>(undefined)
export const dialog = signal<'edit' | 'help' | undefined>(undefined)
/** One line about what just happened. */
export const toast = signal('')

export const selectedIndex = computed(() => rows.value.findIndex(({ id }) => id === selectedId.value))

const RETRY_MS = 1_000
const TOAST_MS = 6_000
/** A list that takes longer is said to be searched. */
const SLOW_MS = 500
let waiting: InspectEvent[] = []
let isPlanned = false
let listening = new AbortController()

/** Reads the list, and then follows it, for ever. */
export function follow(): void {
  effect(() => {
    draft.value = filter.value
    void run(filter.value)
  })
  effect(() => {
    const [id, reveal] = [selectedId.value, isRevealed.value]
    void readDetail(id, reveal)
  })
  let hiding: ReturnType<typeof setTimeout> | undefined
  effect(() => {
    clearTimeout(hiding)
    if (toast.value !== '') hiding = setTimeout(() => (toast.value = ''), TOAST_MS)
  })
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
      // The stream begins with the session. The list comes behind it, so that nothing falls in between.
      await begun.promise
      await readList(wanted, mine.signal)
      await stream
    } catch (error) {
      if (mine.signal.aborted) return
      if (error instanceof Refused && error.code === 'FILTER_INVALID') {
        filterFault.value = error.message
        return
      }
      connection.value = error instanceof Refused && error.code.startsWith('INSPECT_') ? 'refused' : 'lost'
      if (connection.value === 'refused') return
    }
    if (!mine.signal.aborted && connection.value === 'live') connection.value = 'lost'
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
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
  })
}

let readingMore: Promise<void> | undefined

/** Reads the older ones behind the last row. */
export function readMore(): Promise<void> {
  readingMore ??= (async () => {
    const [wanted, last] = [filter.peek(), rows.peek().at(-1)]
    if (last === undefined || !hasMore.peek()) return
    const list = await api.list(wanted, { before: last.id })
    // Read again meanwhile, or with another filter.
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

/** All of them, and the oldest chosen. */
export async function selectOldest(): Promise<void> {
  for (let before = -1; hasMore.peek() && rows.peek().length > before; ) {
    before = rows.peek().length
    await readMore()
  }
  select(rows.peek().at(-1)?.id)
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
  if (changed.size > 0 || removed.size > 0 || unmatched.size > 0) {
    const oldest = hasMore.value ? Number(rows.value.at(-1)?.id ?? 0) : 0
    const kept = rows.value.flatMap(row => {
      const now = changed.get(row.id)
      changed.delete(row.id)
      return removed.has(row.id) || unmatched.has(row.id) ? [] : [now ?? row]
    })
    // Later ones are greater numbers, and come first. Those below the last row are read with `readMore`.
    const fresh = [...changed.values()]
      .filter(row => !removed.has(row.id) && Number(row.id) > oldest)
      .sort((a, b) => Number(b.id) - Number(a.id))
    rows.value = fresh.length > 0 ? [...fresh, ...kept].sort((a, b) => Number(b.id) - Number(a.id)) : kept
  }
  // Without one of them the list would not know where to read on.
  if (isBehind || (hasMore.value && rows.value.length === 0)) void readList(filter.value).catch(() => {})
  if (arrived.length > 0) addFrames(arrived)
  // Messages may be among the lines that are missing.
  if (isBehind && isFollowing && frames.value.length > 0) void showNewestFrames()
  const id = selectedId.value
  if (id === undefined) return
  if (removed.has(id)) selectedId.value = undefined
  else if (unmatched.has(id) || events.some(event => event.type === 'exchange' && event.exchange.id === id))
    void readDetail(id, isRevealed.peek())
}

async function readDetail(id: string | undefined, reveal: boolean): Promise<void> {
  if (id === undefined) {
    detail.value = undefined
    return
  }
  try {
    const found = await api.detail(id, reveal)
    const hasFrames = found.kind === 'websocket' || found.kind === 'sse'
    if (selectedId.peek() !== id) return
    const isOther = detail.peek()?.id !== id
    batch(() => {
      detail.value = found
      if (!isOther) return
      frames.value = []
      if (hasFrames) tab.value = 'messages'
      else if (tab.peek() === 'messages' || (tab.peek() === 'compare' && otherId.peek() === undefined))
        tab.value = 'request'
    })
    // Its messages come as events from then on; it became a WebSocket just now when there are none.
    if (hasFrames && frames.peek().length === 0 && found.frames.kept > 0) await showNewestFrames()
  } catch (error) {
    if (error instanceof Refused && error.code === 'EXCHANGE_NOT_FOUND') selectedId.value = undefined
  }
}

// ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────────

/** More are not in the document at once. */
const MAX_FRAMES_SHOWN = 2 * FRAMES_AT_ONCE

/** The newest are shown, and those that come are put behind them. */
let isFollowing = true
/** Those that come while the newest are read. */
let pending: Frame[] = []
let readingNewest: Promise<void> | undefined

function addFrames(arrived: readonly Frame[]): void {
  if (readingNewest !== undefined) pending.push(...arrived)
  else if (isFollowing && !append(arrived)) void showNewestFrames()
}

/** `false`: some are missing in between. */
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

export function showNewestFrames(): Promise<void> {
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
    isFollowing = true
  })().finally(() => {
    readingNewest = undefined
  })
  return readingNewest
}

export async function showEarlierFrames(): Promise<void> {
  const first = frames.peek()[0]?.index ?? 0
  const { found } = await readFrames(first - FRAMES_AT_ONCE)
  const earlier = found.filter(({ index }) => index < first)
  const all = [...earlier, ...frames.peek()]
  if (all.length > MAX_FRAMES_SHOWN) isFollowing = false
  frames.value = all.slice(0, MAX_FRAMES_SHOWN)
}

export function select(id: string | undefined): void {
  batch(() => {
    selectedId.value = id
    otherId.value = undefined
    isRevealed.value = false
  })
}
