// The user's actions on the shown exchange, by a button or a key.

import type { Edit, ExchangeDetail, ExchangeRow } from '../../exchange.ts'
import { api, type Side } from './api.ts'
import { isPaused, release, removals, selectedIndex, showOwn, visible } from './held.ts'
import {
  connection,
  detail,
  filter,
  go,
  hasMore,
  isRevealed,
  rows,
  selectedId,
  session,
  shown,
} from './signals.ts'
import { readMore } from './state.ts'
import { say } from './toast.ts'

export const FORMATS = [
  ['curl', 'curl'],
  ['fetch', 'fetch'],
  ['bun-test', 'a test for bun'],
  ['vitest', 'a test for vitest'],
  ['node-test', 'a test for node'],
  ['http', 'raw HTTP'],
  ['har', 'HAR'],
] as const

/** The time in milliseconds for a browser to begin saving a file. */
const SAVE_MS = 60_000

const REASONS: Readonly<Record<string, string>> = {
  BODY_TRUNCATED: 'Its body was not kept whole. Edit it to send another one.',
}

/** Returns why the exchange cannot be sent again. `undefined` if it can. */
export function whyNotReplay(one: ExchangeDetail): string | undefined {
  if (connection.value !== 'live') return 'The client is not running.'
  if (one.replayable === true) return undefined
  if (one.isRefused) return 'It never came to this machine: there is nothing to send again.'
  if (one.kind === 'websocket') return 'A WebSocket cannot be replayed: its messages depend on each other.'
  return REASONS[one.replayable] ?? 'It cannot be sent again.'
}

/** Runs an action, and shows its error in one line. */
async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
  }
}

/** Replays the exchange. `resign` is as in `ReplayRequest`. Resolves with whether it was sent. */
export async function replay(edit?: Edit, times = 1, resign?: boolean): Promise<boolean> {
  const one = shown.peek()
  if (one === undefined) return false
  const why = whyNotReplay(one)
  if (why !== undefined && edit?.body === undefined) {
    say(why)
    return false
  }
  let isSent = false
  await attempt(async () => {
    const { replays } = await api.replay(one.id, edit, times, resign)
    isSent = true
    const last = replays.at(-1)
    // The user has chosen another one since.
    if (last === undefined || selectedId.peek() !== one.id) return
    showOwn(replays.map(({ exchange }) => exchange))
    go({ id: last.exchange.id })
    if (times > 1) say(`Sent ${times} times`)
  })
  return isSent
}

export function copyText(text: string, what = 'Copied'): Promise<void> {
  return attempt(async () => {
    await navigator.clipboard.writeText(text)
    say(what)
  })
}

export function copyAs(format: string): Promise<void> {
  const one = shown.peek()
  return attempt(async () => {
    if (one === undefined) return
    const { text, isRedacted } = await api.as(one.id, format, isRevealed.value)
    await copyText(text, isRedacted ? 'Copied, without secrets' : 'Copied')
  })
}

export function copyLink(): Promise<void> {
  return copyText(location.href, 'Link copied')
}

/** Copies the URL of the tunnel, with the path. */
export function copyUrl({ tunnel, path }: ExchangeRow): Promise<void> {
  const url = session.peek()?.tunnels.find(({ name }) => name === tunnel)?.url ?? ''
  return copyText(`${url}${path}`, 'URL copied')
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob)
  Object.assign(document.createElement('a'), { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), SAVE_MS)
}

/** Saves the unchanged bytes as a file. */
export function saveBody(id: string, side: Side): Promise<void> {
  return attempt(async () => save(await api.rawBody(id, side), `${side}-${id}.bin`))
}

/** Saves all exchanges that match the filter. */
export function saveHar(): Promise<void> {
  return attempt(async () => {
    const { blob, isRedacted } = await api.har(filter.peek(), isRevealed.peek())
    save(blob, 'requests.har')
    say(isRedacted ? 'Saved as HAR, without secrets' : 'Saved as HAR')
  })
}

export function togglePin(): Promise<void> {
  const one = shown.peek()
  return attempt(async () => {
    if (one !== undefined) await api.pin(one.id, !one.isPinned)
  })
}

export function saveNote({ id }: ExchangeDetail, note: string): Promise<void> {
  return attempt(async () => {
    await api.note(id, note)
    say(note === '' ? 'The note is gone' : 'Noted')
  })
}

/** Hides exchanges at once, and deletes them on the server when it can no longer be undone. */
function take(
  hides: (row: ExchangeRow) => boolean,
  commit: (isLeaving: boolean) => Promise<unknown>,
  text: string,
): void {
  const here = selectedId.peek()
  const show = () => {
    removals.value = removals.peek().filter(one => one !== hides)
  }
  // An earlier deletion can no longer be undone.
  say(text, {
    undo: () => {
      show()
      if (here !== undefined) go({ id: here })
    },
    commit: () =>
      void attempt(async () => {
        await commit(document.visibilityState === 'hidden')
        rows.value = rows.peek().filter(row => !hides(row))
      }).then(show),
  })
  removals.value = [...removals.peek(), hides]
}

export function remove(): void {
  const one = shown.peek()
  if (one === undefined) return
  const next = visible.peek()[selectedIndex.peek() + 1] ?? visible.peek()[selectedIndex.peek() - 1]
  take(
    ({ id }) => id === one.id,
    isLeaving => api.remove(one.id, isLeaving),
    `Deleted #${one.id}`,
  )
  go({ id: next?.id })
}

export function clear(): void {
  const [wanted, newest] = [filter.peek(), rows.peek()[0]]
  if (newest === undefined) return
  const upTo = Number(newest.id)
  const hides = ({ id, isPinned }: ExchangeRow) => !isPinned && Number(id) <= upTo && filter.peek() === wanted
  const count = hasMore.peek() ? '' : ` ${rows.peek().filter(hides).length}`
  take(hides, isLeaving => api.clear(wanted, newest.id, isLeaving), `Cleared${count} requests`)
  go({ id: undefined })
}

/**
 * Compares with the request that it repeats, otherwise with the previous one with the same method and path, otherwise
 * with any other.
 */
export function compare(): void {
  const one = shown.peek()
  if (one === undefined) return
  const isLike = (row: ExchangeRow) =>
    row.method === one.method && row.path === one.path && Number(row.id) < Number(one.id)
  const other =
    one.replayOf ?? rows.peek().find(isLike)?.id ?? rows.peek().find(({ id }) => id !== one.id)?.id
  if (one.request === undefined) say('There are no bytes of it to compare.')
  else if (other === undefined) say('There is no other request to compare it with.')
  else go({ id: one.id, mode: 'compare', other })
}

export function edit(): void {
  const one = shown.peek()
  if (one === undefined) return
  const why = one.request === undefined || one.kind === 'websocket' ? whyNotReplay(one) : undefined
  if (why === undefined) go({ id: one.id, mode: 'edit' })
  else say(why)
}

/** Moves the selection from the selected row; from the original of a replay that the list does not show. */
export function move(by: number): void {
  const all = visible.peek()
  const original = detail.peek()?.replayOf
  const here = selectedIndex.peek() >= 0 ? selectedIndex.peek() : all.findIndex(({ id }) => id === original)
  const next = here < 0 ? 0 : Math.min(Math.max(here + by, 0), all.length - 1)
  if (all[next] !== undefined) go({ id: all[next].id })
}

export function selectNewest(): void {
  release()
  go({ id: rows.peek()[0]?.id })
}

/** Reads all rows, and selects the oldest. */
export async function selectOldest(): Promise<void> {
  for (let before = -1; hasMore.peek() && rows.peek().length > before; ) {
    before = rows.peek().length
    await readMore()
  }
  go({ id: visible.peek().at(-1)?.id })
}

export function togglePause(): void {
  isPaused.value = !isPaused.peek()
}
