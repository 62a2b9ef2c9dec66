// Which rows the list shows. While a user aims at one, reads on or has paused it, no row moves: those that come wait.

import { batch, computed, effect, signal } from '@preact/signals'
import type { ExchangeRow } from '../../exchange.ts'
import { filter, rows, rowsFilter, selectedId } from './signals.ts'

export const isPaused = signal(false)
/** The pointer is over the list. */
export const isAimed = signal(false)
export const isScrolled = signal(false)
/** The rows that removals take away, of which the last can be undone. */
export const removals = signal<readonly ((row: ExchangeRow) => boolean)[]>([])

const isHeld = computed(
  () => isPaused.value || isAimed.value || isScrolled.value || selectedId.value !== undefined,
)
/** The rows that the list showed when it was held. */
const frozen = signal<{ readonly ids: ReadonlySet<string>; readonly oldest: number } | undefined>(undefined)
/** Asked for by the user: the list shows them although it is held. */
const own = signal<ReadonlySet<string>>(new Set())
/** These rows no longer match, and stay while the list is held. */
const stale = new Set<string>()

const there = computed(() => rows.value.filter(row => !removals.value.some(removes => removes(row))))

export const visible = computed(() => {
  const { value } = frozen
  if (value === undefined) return there.value
  return there.value.filter(({ id }) => value.ids.has(id) || own.value.has(id) || Number(id) < value.oldest)
})

export const waitingCount = computed(() => there.value.length - visible.value.length)

/** In the list; of a replay that it does not show, its original is. */
export const selectedIndex = computed(() => visible.value.findIndex(({ id }) => id === selectedId.value))

/** Shows all that wait. */
export function release(): void {
  batch(() => {
    frozen.value = undefined
    if (stale.size === 0) return
    rows.value = rows.peek().filter(({ id }) => !stale.has(id))
    stale.clear()
  })
}

/** The results of replays from this page, by the id of their original. */
export const replayed = signal<ReadonlyMap<string, number>>(new Map())

/** Replays: their place is on top, when they come. */
export function showOwn(replays: readonly ExchangeRow[]): void {
  own.value = new Set([...own.peek(), ...replays.map(({ id }) => id)])
  replayed.value = new Map([
    ...replayed.peek(),
    ...replays.map(({ replayOf = '', status }) => [replayOf, status] as const),
  ])
}

/** `true`: they leave later, because the list is held. */
export function leaveLater(ids: Iterable<string>): boolean {
  if (!isHeld.peek()) return false
  for (const id of ids) stale.add(id)
  return true
}

/** The row matches again. */
export function stays(id: string): void {
  stale.delete(id)
}

export function followHolds(): void {
  effect(() => {
    if (!isHeld.value) release()
    else if (frozen.value === undefined && rows.value.length > 0 && rowsFilter.value === filter.value) {
      const all = rows.value
      frozen.value = { ids: new Set(all.map(({ id }) => id)), oldest: Number(all.at(-1)?.id ?? 0) }
    }
  })
  // Another filter is another list.
  effect(() => {
    void filter.value
    stale.clear()
    frozen.value = undefined
  })
}
