// The page of the inspector: its head, the list with its filter, and one request.

import '../tokens.css'
import '../ui.css'
import './inspector.css'
import './detail.css'
import { render } from 'preact'
import { useRef } from 'preact/hooks'
import { bytes } from '../parts/format.ts'
import { Address, Banner, Icon, IconButton, Mark } from '../parts/icons.tsx'
import { clear, saveHar, togglePause } from './actions.ts'
import { takeToken } from './api.ts'
import { Detail } from './detail.tsx'
import { FilterBar } from './filter-bar.tsx'
import { followHolds, isPaused } from './held.ts'
import { Help } from './help.tsx'
import { listenToKeys } from './keys.ts'
import { List, Outside } from './list.tsx'
import { connection, followAddress, go, isHelpOpen, now, rows, selectedId, session } from './signals.ts'
import { follow, reconnect } from './state.ts'
import { followTitle } from './title.ts'
import { dismiss, toast } from './toast.ts'

function Page() {
  return (
    <>
      <header class="top">
        <h1 class="sr">Inspector</h1>
        <button
          type="button"
          class="brand"
          aria-label="localtunnels, all requests"
          onClick={() => go({ id: undefined })}
        >
          <Mark />
          <span>localtunnels</span>
        </button>
        <Services />
        <span class="grow" />
        <Live />
        <IconButton
          icon="help"
          label="Keys and help"
          title="Keys (?)"
          onClick={() => (isHelpOpen.value = true)}
        />
      </header>
      {connection.value === 'lost' && <Lost />}
      {connection.value === 'unproven' && <Unproven />}
      <main class={selectedId.value === undefined ? '' : 'has-detail'}>
        <section class="list" aria-label="Requests">
          <FilterBar />
          <List />
          <Outside />
          <Foot />
        </section>
        <Grip />
        <Detail />
      </main>
      {toast.value !== undefined && (
        <div class="toast" role="status">
          {toast.value.text}
          {toast.value.undo === undefined ? (
            <button type="button" aria-label="Close" onClick={dismiss}>
              <Icon name="close" />
            </button>
          ) : (
            <button type="button" onClick={toast.value.undo}>
              Undo
            </button>
          )}
        </div>
      )}
      {isHelpOpen.value && <Help />}
    </>
  )
}

function Services() {
  const tunnels = session.value?.tunnels ?? []
  return (
    <nav class="services" aria-label="Services">
      {tunnels.map(({ name, url, service }) => (
        <Address key={url} class="service" url={url} title={`${url} → ${service}`}>
          <b>{name}</b>
          <span class="to quiet">{url.replace(/^https?:\/\//, '')}</span>
        </Address>
      ))}
    </nav>
  )
}

const CONNECTIONS = {
  loading: 'Connecting',
  live: 'Live',
  lost: 'Not connected',
  refused: 'No token',
  unproven: 'Not connected',
} as const

function Live() {
  const { value } = connection
  const isLive = value === 'live'
  return (
    <button
      type="button"
      class="btn bare live"
      aria-pressed={isPaused.value}
      title={isPaused.value ? 'Continue (Space)' : 'Pause (Space)'}
      onClick={isLive ? togglePause : reconnect}
    >
      {isPaused.value ? (
        <>
          <Icon name="play" />
          Paused
        </>
      ) : (
        <>
          <span class={`dot ${isLive ? 'ok' : 'warn'}`} />
          <span>{CONNECTIONS[value]}</span>
          {isLive && <Icon name="pause" />}
        </>
      )}
    </button>
  )
}

const Lost = () => (
  <Banner
    look="warn"
    icon="plug"
    role="alert"
    acts={
      <button type="button" class="btn bare" onClick={reconnect}>
        Try now
      </button>
    }
  >
    <b class="strong">The client on this machine has stopped.</b> What it captured stays readable; replay
    waits until it is back. This page tries again every second.
  </Banner>
)

const Unproven = () => (
  <Banner look="warn" icon="plug" role="alert">
    <b class="strong">What answers here has not proven that it is your client.</b> It is another program, or a
    client with another token. This page sends it nothing: open the address that the terminal shows.
  </Banner>
)

function Foot() {
  const { value } = session
  if (value === undefined) return <footer class="foot" />
  const { used, bounds, dropped, isSampling } = value
  return (
    <footer class="foot">
      <span class="cut">
        {used.exchanges.toLocaleString('en')} {used.exchanges === 1 ? 'request' : 'requests'} ·{' '}
        {bytes(used.memoryBytes)} of {bytes(bounds.memoryBytes)}
        {dropped.exchanges > 0 && ` · ${dropped.exchanges.toLocaleString('en')} older ones dropped`}
        {dropped.bytes > 0 && ` · ${bytes(dropped.bytes)} not captured`}
        {isSampling && <b class="is-warn"> · more come than are captured</b>}
      </span>
      <span class="grow" />
      {rows.value.length > 0 && (
        <>
          <button type="button" onClick={() => void saveHar()}>
            Save as HAR
          </button>
          <button type="button" onClick={clear}>
            Clear
          </button>
        </>
      )}
    </footer>
  )
}

const NARROWEST = 360
const WIDEST = 900

/** The handle between list and detail, moved by dragging or with arrow keys. */
function Grip() {
  const line = useRef<HTMLDivElement>(null)
  const width = () => document.querySelector('.list')?.clientWidth ?? NARROWEST
  const set = (to: number) => {
    const most = Math.min(WIDEST, innerWidth - 400)
    const px = Math.max(NARROWEST, Math.min(most, to))
    document.querySelector('main')?.style.setProperty('--list', `${px}px`)
    line.current?.setAttribute('aria-valuenow', `${px}`)
  }
  return (
    <div
      class="grip"
      ref={line}
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the list"
      aria-valuenow={480}
      aria-valuemin={NARROWEST}
      aria-valuemax={WIDEST}
      tabIndex={0}
      onPointerDown={event => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={event => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) set(event.clientX)
      }}
      onKeyDown={event => {
        const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key]
        if (by === undefined) return
        event.preventDefault()
        event.stopPropagation()
        set(width() + by)
      }}
    />
  )
}

const TICK_MS = 1_000

takeToken()
addEventListener('hashchange', () => {
  // The address of another start, pasted into this tab. A reload would load the page of any program at this port.
  if (takeToken()) reconnect()
})
// Actions that can no longer be undone when the page is gone.
addEventListener('pagehide', dismiss)
followAddress()
followHolds()
follow()
followTitle()
listenToKeys()
setInterval(() => {
  if (rows.peek().some(({ state }) => state === 'open')) now.value = Date.now()
}, TICK_MS)
render(<Page />, document.body)
