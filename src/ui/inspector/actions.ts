// What a user can do with an exchange, by a button or a key.

import type { Edit, ExchangeDetail } from '../../client/inspect/exchange.ts'
import { api, type Side } from './api.ts'
import {
  detail,
  dialog,
  isRevealed,
  otherId,
  rows,
  select,
  selectedId,
  selectedIndex,
  tab,
  toast,
} from './state.ts'

export const FORMATS = [
  ['curl', 'curl'],
  ['fetch', 'fetch'],
  ['bun-test', 'bun test'],
  ['http', 'raw HTTP'],
  ['har', 'HAR'],
] as const

/** How long a browser has to begin with a file. */
const SAVE_MS = 60_000

const VERDICTS = {
  same: 'The answer is the same.',
  fixed: 'Fixed: the error is gone.',
  regressed: 'Regressed: this is an error now.',
  different: 'The answer is different.',
} as const

/** What is shown, unless another one was chosen a moment ago. */
const chosen = (): ExchangeDetail | undefined =>
  detail.value?.id === selectedId.value ? detail.value : undefined

/** Says what failed in one line. */
async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    toast.value = error instanceof Error ? error.message : String(error)
  }
}

/** `resign`: as `ReplayRequest` has it. */
export function replay(edit?: Edit, times = 1, resign?: boolean): Promise<void> {
  const id = selectedId.value ?? 'latest'
  return attempt(async () => {
    const { replays } = await api.replay(id, edit, times, resign)
    const last = replays.at(-1)
    if (last === undefined) return
    select(last.exchange.id)
    otherId.value = last.exchange.replayOf
    toast.value = `${times > 1 ? `Sent ${times} times. ` : ''}${VERDICTS[last.verdict]}`
  })
}

export function copyAs(format: string): Promise<void> {
  const id = selectedId.value
  return attempt(async () => {
    if (id === undefined) return
    const { text, isRedacted } = await api.as(id, format, isRevealed.value)
    await navigator.clipboard.writeText(text)
    toast.value = isRedacted ? 'Copied, without secrets: reveal them to copy them, too.' : 'Copied.'
  })
}

/** As a file, the bytes as they came. */
export function saveBody(id: string, side: Side): Promise<void> {
  return attempt(async () => {
    const url = URL.createObjectURL(await api.rawBody(id, side))
    const link = Object.assign(document.createElement('a'), { href: url, download: `${side}-${id}.bin` })
    link.click()
    setTimeout(() => URL.revokeObjectURL(url), SAVE_MS)
  })
}

export function togglePin(): Promise<void> {
  const value = chosen()
  return attempt(async () => {
    if (value !== undefined) await api.pin(value.id, !value.isPinned)
  })
}

export function saveNote({ id }: ExchangeDetail, note: string): Promise<void> {
  return attempt(async () => {
    await api.note(id, note)
    toast.value = note === '' ? 'The note is gone.' : 'Noted.'
  })
}

export function remove(): Promise<void> {
  const id = selectedId.value
  return attempt(async () => {
    if (id === undefined) return
    move(1)
    await api.remove(id)
  })
}

export function clear(filter: string): Promise<void> {
  return attempt(async () => {
    await api.clear(filter)
    toast.value = 'Cleared. What is pinned stays.'
  })
}

/** The exchange that it repeats, else the one before with the same method and path. */
export function compare(): void {
  const value = chosen()
  if (value === undefined) return
  const isLike = (row: { id: string; method: string; path: string }) =>
    row.method === value.method && row.path === value.path && Number(row.id) < Number(value.id)
  otherId.value ??= value.replayOf ?? rows.value.find(isLike)?.id
  if (otherId.value === undefined) toast.value = 'There is no earlier request like this one: replay it first.'
  else tab.value = 'compare'
}

export function move(by: number): void {
  const all = rows.value
  if (all.length === 0) return
  const index = selectedIndex.value
  const next = index < 0 ? 0 : Math.min(Math.max(index + by, 0), all.length - 1)
  select(all[next]?.id)
}

export const openEditor = (): void => {
  if (chosen()?.request !== undefined) dialog.value = 'edit'
}
