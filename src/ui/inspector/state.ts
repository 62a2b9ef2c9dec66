// What the page shows. The list is the server's, in its order; changes come as events and are put in once a frame.

import { batch, computed, effect, signal } from '@preact/signals'
import type {
  ExchangeDetail,
  ExchangeRow,
  Frame,
  InspectEvent,
  Session,
} from '../../client/inspect/exchange.ts'
import { api, listen, Refused } from './api.ts'

export type Tab = 'request' | 'answer' | 'messages' | 'compare'

export const session = signal<Session | undefined>(undefined)
export const rows = signal<readonly ExchangeRow[]>([])
export const connection = signal<'loading' | 'live' | 'lost' | 'refused'>('loading')
export const filter = signal('')
/** What stands in the field of the filter: a moment later it is the filter. */
export const draft = signal('')
export const filterFault = signal('')
export const selectedId = signal<string | undefined>(undefined)
export const detail = signal<ExchangeDetail | undefined>(undefined)
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
      const { exchanges } = await api.list(wanted)
      if (mine.signal.aborted) return
      batch(() => {
        rows.value = exchanges
        filterFault.value = ''
      })
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
  for (const event of events) {
    if (event.type === 'exchange') changed.set(event.exchange.id, event.exchange)
    else if (event.type === 'removed') for (const id of event.ids) removed.add(id)
    else if (event.type === 'session') session.value = event.session
    else if (event.type === 'frame' && event.id === selectedId.value)
      frames.value = [...frames.value, event.frame]
    else if (event.type === 'behind')
      void api.list(filter.value).then(({ exchanges }) => (rows.value = exchanges))
  }
  if (changed.size > 0 || removed.size > 0) {
    const kept = rows.value.flatMap(row => {
      const now = changed.get(row.id)
      changed.delete(row.id)
      return removed.has(row.id) ? [] : [now ?? row]
    })
    // Later ones are greater numbers, and come first.
    const fresh = [...changed.values()]
      .filter(({ id }) => !removed.has(id))
      .sort((a, b) => Number(b.id) - Number(a.id))
    rows.value = fresh.length > 0 ? [...fresh, ...kept].sort((a, b) => Number(b.id) - Number(a.id)) : kept
  }
  const id = selectedId.value
  if (id === undefined) return
  if (removed.has(id)) selectedId.value = undefined
  else if (events.some(event => event.type === 'exchange' && event.exchange.id === id))
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
    const { frames: all } = hasFrames ? await api.frames(id) : { frames: [] }
    if (selectedId.peek() !== id) return
    batch(() => {
      const isOther = detail.peek()?.id !== id
      detail.value = found
      frames.value = all
      if (isOther && hasFrames) tab.value = 'messages'
      else if (
        isOther &&
        (tab.peek() === 'messages' || (tab.peek() === 'compare' && otherId.peek() === undefined))
      )
        tab.value = 'request'
    })
  } catch (error) {
    if (error instanceof Refused && error.code === 'EXCHANGE_NOT_FOUND') selectedId.value = undefined
  }
}

export function select(id: string | undefined): void {
  batch(() => {
    selectedId.value = id
    otherId.value = undefined
    isRevealed.value = false
  })
}
