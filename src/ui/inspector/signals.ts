// The state of the page, as signals that its parts follow.

import { batch, computed, signal } from '@preact/signals'
import type { ExchangeDetail, ExchangeRow, Session } from '../../exchange.ts'
import { hashOf, type Mode, type Place, placeOf } from './address.ts'

export const session = signal<Session | undefined>(undefined)
/** All loaded rows, newest first; the list shows `visible`. */
export const rows = signal<readonly ExchangeRow[]>([])
/** Whether there are older ones than the last of `rows`. */
export const hasMore = signal(false)
export const connection = signal<'loading' | 'live' | 'lost' | 'refused' | 'unproven'>('loading')
/** Whether the list takes long, because bodies are searched. */
export const isSearching = signal(false)
/** The filter of `rows`. `undefined` before any were read. */
export const rowsFilter = signal<string | undefined>(undefined)
export const isRead = computed(() => rowsFilter.value !== undefined)

export const filter = signal('')
/** The text in the filter's field, which becomes the filter a moment later. */
export const draft = signal('')
export const filterFault = signal('')

export const selectedId = signal<string | undefined>(undefined)
export const mode = signal<Mode>('')
/** The exchange that the selected one is compared with. */
export const otherId = signal<string | undefined>(undefined)

/** The exchange that was read last; `shown` says whether it is the selected one. */
export const detail = signal<ExchangeDetail | undefined>(undefined)
/** Why the selected one cannot be shown; `gone`: it is not stored. */
export const detailFault = signal<string | undefined>(undefined)
export const isRevealed = signal(false)

/** The selected one, once it is loaded, on which actions work. */
export const shown = computed(() =>
  detail.value !== undefined && detail.value.id === selectedId.value ? detail.value : undefined,
)
export const isHelpOpen = signal(false)
/** The time in milliseconds, for requests in progress. */
export const now = signal(Date.now())

const place = (): Place => ({
  id: selectedId.peek(),
  mode: mode.peek(),
  other: otherId.peek(),
  filter: filter.peek(),
})

/** Goes to another place, so that Back returns here. */
export function go(to: Partial<Omit<Place, 'filter'>>): void {
  const next = { ...place(), mode: '' as const, other: undefined, ...to }
  if (hashOf(next) === hashOf(place())) return
  take(next)
  history.pushState(null, '', hashOf(next))
}

/** Sets the filter, and replaces the current place. */
export function setFilter(text: string): void {
  filter.value = text.trim()
  draft.value = text
  history.replaceState(null, '', hashOf(place()))
}

/** Follows the address, from the start and when it changes. */
export function followAddress(): void {
  const read = () => take(placeOf(location.hash))
  read()
  addEventListener('popstate', read)
}

function take(next: Place): void {
  batch(() => {
    if (next.id !== selectedId.peek()) isRevealed.value = false
    selectedId.value = next.id
    mode.value = next.mode
    otherId.value = next.other
    if (filter.peek() !== next.filter) {
      filter.value = next.filter
      draft.value = next.filter
    }
  })
}
