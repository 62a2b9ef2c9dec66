// The page of the inspector.

import '../style.css'
import { render } from 'preact'
import { bytes } from '../parts/format.ts'
import { clear } from './actions.ts'
import { Detail } from './detail.tsx'
import { Dialogs } from './dialogs.tsx'
import { listenToKeys } from './keys.ts'
import { List } from './list.tsx'
import {
  connection,
  dialog,
  draft,
  filter,
  filterFault,
  follow,
  isSearching,
  rows,
  selectedId,
  session,
  toast,
} from './state.ts'

const CONNECTIONS = {
  loading: 'connecting…',
  live: 'live',
  lost: 'connection lost, trying again',
  refused: 'this address has no valid token: open the one that the terminal shows',
} as const

const TYPING_MS = 200
let typing: ReturnType<typeof setTimeout> | undefined

function Page() {
  return (
    <div class={`page-grid ${selectedId.value === undefined ? 'no-detail' : 'has-detail'}`}>
      <header class="top">
        <h1>localtunnels</h1>
        <p class="tunnels">
          {session.value?.tunnels.map(({ url, service }) => (
            <span key={url}>
              {url.startsWith('http') ? (
                <a href={url} target="_blank" rel="noreferrer noopener">
                  {url}
                </a>
              ) : (
                url
              )}{' '}
              → {service}
            </span>
          ))}
        </p>
        <p class={`connection ${connection.value}`} role="status">
          {isSearching.value ? 'searching…' : CONNECTIONS[connection.value]}
        </p>
        <button type="button" onClick={() => (dialog.value = 'help')} aria-label="Keys">
          ?
        </button>
      </header>
      <main>
        <section class="left" aria-label="List">
          <div class="filter">
            <input
              id="filter"
              type="search"
              placeholder="Filter: POST /hooks status:5xx body:paid"
              aria-label="Filter"
              aria-invalid={filterFault.value !== ''}
              aria-describedby="filter-fault"
              value={draft.value}
              onInput={event => {
                const text = event.currentTarget.value
                draft.value = text
                clearTimeout(typing)
                typing = setTimeout(() => (filter.value = text), TYPING_MS)
              }}
            />
            <button type="button" disabled={rows.value.length === 0} onClick={() => void clear(filter.value)}>
              Clear
            </button>
          </div>
          <p id="filter-fault" class="note" role="alert" hidden={filterFault.value === ''}>
            {filterFault.value}
          </p>
          <List />
          <Usage />
        </section>
        <div class="right">
          <Detail />
        </div>
      </main>
      <p class="toast" role="status" hidden={toast.value === ''}>
        {toast.value}
      </p>
      <Dialogs />
    </div>
  )
}

function Usage() {
  const { value } = session
  if (value === undefined) return null
  const { used, bounds, dropped, isSampling } = value
  return (
    <footer class="usage quiet">
      {used.exchanges} of {bounds.maxExchanges} exchanges, {bytes(used.memoryBytes)} of{' '}
      {bytes(bounds.memoryBytes)}
      {dropped.exchanges > 0 && `, ${dropped.exchanges} older ones dropped`}
      {dropped.bytes > 0 && `, ${bytes(dropped.bytes)} not captured`}
      {isSampling && <b>, more come than are captured</b>}
    </footer>
  )
}

listenToKeys()
follow()
render(<Page />, document.body)
