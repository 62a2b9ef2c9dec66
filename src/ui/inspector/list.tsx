// The exchanges, newest first.

import type { ExchangeRow } from '../../client/inspect/exchange.ts'
import { bytes, clock, duration } from '../parts/format.ts'
import { VirtualList } from '../parts/virtual-list.tsx'
import { connection, filter, hasMore, readMore, rows, select, selectedIndex, session } from './state.ts'

const ROW_HEIGHT = 44

export function List() {
  if (rows.value.length === 0) return <Empty />
  return (
    <VirtualList
      items={rows.value}
      rowHeight={ROW_HEIGHT}
      activeIndex={selectedIndex.value}
      label="Exchanges"
      idOf={({ id }) => id}
      onSelect={({ id }) => select(id)}
      onMore={hasMore.value ? () => void readMore() : undefined}
    >
      {row => <Row row={row} />}
    </VirtualList>
  )
}

function Row({ row }: { readonly row: ExchangeRow }) {
  const isRaw = row.method === ''
  return (
    <>
      <Status row={row} />
      <span class="what">
        <span class="line">
          <b class="method">{isRaw ? row.kind.toUpperCase() : row.method}</b>{' '}
          <span class="path">{isRaw ? (row.visitor ?? row.tunnel) : row.path}</span>
        </span>
        <span class="line more">
          {clock(row.startedAt)} · {duration(row.times.totalMs)} ·{' '}
          {bytes(isRaw ? row.bytesIn + row.bytesOut : row.answerBody.totalBytes)}
          {row.replayOf !== undefined && ` · replay of ${row.replayOf}`}
          {row.frames.total > 0 && ` · ${row.frames.total} messages`}
          {row.verified !== undefined && (row.verified.isValid ? ' · signed' : ' · signature wrong')}
          {row.isPinned && ' · pinned'}
          {row.note !== '' && ` · ${row.note}`}
        </span>
      </span>
    </>
  )
}

/** Never by colour alone: the number, or a word. */
export function Status({ row }: { readonly row: ExchangeRow }) {
  const { status, state, code } = row
  const tone =
    state === 'failed' || status >= 500 ? 'bad' : status >= 400 ? 'warn' : state === 'open' ? 'open' : 'good'
  const text = status > 0 ? `${status}` : state === 'open' ? 'open' : state === 'failed' ? 'failed' : 'done'
  return (
    <span class={`status ${tone}`} title={code ?? state}>
      {text}
    </span>
  )
}

function Empty() {
  if (connection.value === 'loading') return <p class="empty">Loading…</p>
  if (connection.value === 'refused')
    return (
      <p class="empty">
        Open the address that the terminal shows: its token is behind the #, and new with each start.
      </p>
    )
  if (filter.value !== '')
    return (
      <p class="empty">
        Nothing matches this filter.{' '}
        <button type="button" onClick={() => (filter.value = '')}>
          Show everything
        </button>
      </p>
    )
  const [tunnel] = session.value?.tunnels ?? []
  return (
    <div class="empty">
      <p>
        <b>Nothing came yet.</b>
      </p>
      {tunnel !== undefined && (
        <p>
          Requests to <code>{tunnel.url}</code> show here as they come. Try:
        </p>
      )}
      {tunnel !== undefined && <pre>curl {tunnel.url}</pre>}
    </div>
  )
}
