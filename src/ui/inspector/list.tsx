// The requests, newest first, one line each.

import { computed } from '@preact/signals'
import type { ExchangeRow } from '../../exchange.ts'
import { bytes, clock, duration, moment } from '../parts/format.ts'
import { VirtualList } from '../parts/virtual-list.tsx'
import { isAimed, isScrolled, release, replayed, selectedIndex, visible, waitingCount } from './held.ts'
import { filter, go, hasMore, isRead, now, rows, session, shown } from './signals.ts'
import { readMore } from './state.ts'
import { Empty } from './states.tsx'

const ROW_HEIGHT = 32
const ROW_HEIGHT_PHONE = 56
const phone = matchMedia('(max-width: 720px)')

/** The status of the last replay by the id of its original, because the filter may hide replays. */
const lastReplay = computed(() => {
  const found = new Map<string, number>()
  for (const { replayOf, status, state } of rows.value)
    if (replayOf !== undefined && state !== 'open' && !found.has(replayOf)) found.set(replayOf, status)
  return new Map([...found, ...replayed.value])
})
const hasServices = computed(() => (session.value?.tunnels.length ?? 0) > 1)

export function List() {
  if (!isRead.value || visible.value.length === 0) return <Empty />
  return (
    <>
      <Heads />
      <Pill />
      <VirtualList
        items={visible.value}
        rowHeight={phone.matches ? ROW_HEIGHT_PHONE : ROW_HEIGHT}
        activeIndex={selectedIndex.value}
        label="Requests, newest first"
        idOf={({ id }) => id}
        onSelect={({ id }) => go({ id })}
        onMore={hasMore.value ? () => void readMore() : undefined}
        onAim={is => (isAimed.value = is)}
        onScroll={top => (isScrolled.value = top > 0)}
      >
        {row => <Row row={row} />}
      </VirtualList>
    </>
  )
}

function Heads() {
  return (
    <div class="heads cols" aria-hidden="true">
      <span>Status</span>
      <span>Method</span>
      <span>Path</span>
      <span class="w">Event</span>
      <span>{hasServices.value && 'Service'}</span>
      <span class="num w">Size</span>
      <span class="num">Duration</span>
      <span class="w ticks">
        <span>1 ms</span>
        <span>10</span>
        <span>100</span>
        <span>1 s</span>
      </span>
      <span class="num tmh">Time</span>
    </div>
  )
}

/** A button above the column heads, where it covers no row. */
function Pill() {
  if (waitingCount.value === 0) return null
  const show = () => {
    release()
    document.querySelector('.rows')?.scrollTo({ top: 0 })
  }
  return (
    <div class="pill" role="status">
      <button type="button" title="Home" onClick={show}>
        ↑ {waitingCount.value} new
      </button>
    </div>
  )
}

export function Row({ row, note }: { readonly row: ExchangeRow; readonly note?: string }) {
  const isRaw = row.method === ''
  const size = isRaw
    ? row.bytesIn + row.bytesOut
    : Math.max(row.responseBody.totalBytes, row.frames.totalBytes)
  const again = lastReplay.value.get(row.id)
  return (
    <>
      <Status row={row} />
      <span class="m cut">{isRaw ? row.kind.toUpperCase() : row.method}</span>
      <span class="p">
        {row.event !== undefined && <span class="ev cut">{row.event}</span>}
        <code class="cut">{isRaw ? (row.visitor ?? row.tunnel) : row.path}</code>
        {note !== undefined && <span class="tag">{note}</span>}
        {again !== undefined && (
          <span class={`tag ${again > 0 && again < 500 ? 'ok' : 'bad'}`}>replayed: {again || 'failed'}</span>
        )}
        {row.replayOf !== undefined && <span class="tag">replay of #{row.replayOf}</span>}
        {row.isRefused && <span class="tag bad">refused</span>}
        {row.verified?.isValid === false && <span class="tag warn">signature wrong</span>}
        {row.isPinned && <span class="tag info">pinned</span>}
        {row.note !== '' && <span class="tag note cut">{row.note}</span>}
      </span>
      <span class="w cut ev-col">{row.event}</span>
      <span class="sv cut">{hasServices.value && row.tunnel}</span>
      <span class="sz w">{size > 0 ? bytes(size) : '—'}</span>
      <span class="du">
        <Time row={row} />
      </span>
      <Waterfall row={row} />
      <span class="tm" title={moment(row.startedAt)}>
        {clock(row.startedAt)}
      </span>
    </>
  )
}

/** The duration of a request; of one in progress, the time until now. */
function Time({ row }: { readonly row: ExchangeRow }) {
  if (row.state !== 'open') return <>{row.isRefused ? '—' : duration(row.times.totalMs)}</>
  if (row.kind !== 'http') return <span class="is-info">open</span>
  return <span class="is-info">{duration(Math.max(0, now.value - Date.parse(row.startedAt)))}</span>
}

/** The durations on one axis for all rows: 1 ms to 10 s, by powers of ten. */
function Waterfall({ row }: { readonly row: ExchangeRow }) {
  const { totalMs } = row.times
  const isOpen = row.state === 'open'
  if ((totalMs === undefined && !isOpen) || row.isRefused) return <span class="wf w" />
  const share = isOpen ? 1 : Math.min(1, Math.max(0.01, Math.log10(Math.max(1, totalMs ?? 1)) / 4))
  const isSlow = !isOpen && row.kind === 'http' && (totalMs ?? 0) >= 1_000
  return (
    <span class="wf w" aria-hidden="true">
      <i class={isOpen ? 'open' : isSlow ? 'slow' : ''} style={{ width: `${share * 100}%` }} />
    </span>
  )
}

export function toneOf({ status, state, isRefused }: ExchangeRow): string {
  if (state === 'failed' || isRefused || status >= 500) return 'is-bad'
  if (status >= 400) return 'is-warn'
  return status >= 300 || status === 101 || state === 'open' ? 'is-info' : ''
}

/** The status as a number or a word, never by colour alone. */
function Status({ row }: { readonly row: ExchangeRow }) {
  const { status, state, code } = row
  const text = status > 0 ? `${status}` : state === 'open' ? '…' : state === 'failed' ? 'fail' : '—'
  return (
    <span class={`st ${toneOf(row)}`} title={code ?? (state === 'open' ? 'under way' : state)}>
      {text}
    </span>
  )
}

/** The row of the selected exchange, if the filter hides it from the list. */
export function Outside() {
  const { value } = shown
  if (value === undefined || filter.value === '' || rows.value.some(({ id }) => id === value.id)) return null
  return (
    <div class="outside">
      <div class="row cols is-selected">
        <Row row={value} note="outside the filter" />
      </div>
    </div>
  )
}
