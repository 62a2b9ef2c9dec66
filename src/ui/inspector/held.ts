// Decides which rows the list shows. While the user points at a row, reads older ones or has paused the list, no row
// moves, and new ones wait.

import { batch, computed, effect, signal } from '@preact/signals'
import type { ExchangeRow } from '../../exchange.ts'
import { filter, rows, rowsFilter, selectedId } from './signals.ts'

export const isPaused = signal(false)
/** Whether the pointer is over the list. */
export const isAimed = signal(false)
export const isScrolled = signal(false)
/** The functions that choose deleted rows, one for each deletion. The last one can be undone. */
export const removals = signal<readonly ((row: ExchangeRow) => boolean)[]>([])

const isHeld = computed(
  () => isPaused.value || isAimed.value || isScrolled.value || selectedId.value !== undefined,
)
/** The rows that the list showed when it was paused. */
const frozen = signal<{ readonly ids: ReadonlySet<string>; readonly oldest: number } | undefined>(undefined)
/** The rows that the user asked for, which the paused list shows anyway. */
const own = signal<ReadonlySet<string>>(new Set())
/** The rows that no longer match, and stay while the list is paused. */
const stale = new Set<string>()

const there = computed(() => rows.value.filter(row => !removals.value.some(removes => removes(row))))

export const visible = computed(() => {
  const { value } = frozen
  if (value === undefined) return there.value
  return there.value.filter(({ id }) => value.ids.has(id) || own.value.has(id) || Number(id) < value.oldest)
})

export const waitingCount = computed(() => there.value.length - visible.value.length)

/** The index of the selected row in the list; for a replay that it does not show, that of its original. */
export const selectedIndex = computed(() => visible.value.findIndex(({ id }) => id === selectedId.value))

/** Shows all waiting rows. */
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

/** Shows replays, whose place is at the top. */
export function showOwn(replays: readonly ExchangeRow[]): void {
  own.value = new Set([...own.peek(), ...replays.map(({ id }) => id)])
  replayed.value = new Map([
    ...replayed.peek(),
    ...replays.map(({ replayOf = '', status }) => [replayOf, status] as const),
  ])
}

/** Removes rows. Returns `true` if they are removed later, because the list is paused. */
export function leaveLater(ids: Iterable<string>): boolean {
  if (!isHeld.peek()) return false
  for (const id of ids) stale.add(id)
  return true
}

/** Called when the row matches again. */
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
  // Another filter means another list.
  effect(() => {
    void filter.value
    stale.clear()
    frozen.value = undefined
  })
}
