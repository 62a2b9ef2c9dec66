// The page of the admin listener.

import '../style.css'
import '../admin.css'
import 'uplot/dist/uPlot.min.css'
import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import {
  connection,
  filter,
  follow,
  isSignedIn,
  question,
  show,
  signIn,
  signOut,
  status,
  toast,
  VIEWS,
  type View,
  view,
} from './state.ts'
import { Bans, Clients, Log, Server, Tunnels } from './tables.tsx'
import { Tokens } from './tokens.tsx'
import { Traffic } from './traffic.tsx'

const TITLES: Readonly<Record<View, string>> = {
  tunnels: 'Tunnels',
  clients: 'Clients',
  traffic: 'Traffic',
  tokens: 'Tokens',
  bans: 'Bans',
  log: 'Log',
  server: 'Server',
}
const BODIES: Readonly<Record<View, () => preact.JSX.Element>> = {
  tunnels: Tunnels,
  clients: Clients,
  traffic: Traffic,
  tokens: Tokens,
  bans: Bans,
  log: Log,
  server: Server,
}
const CONNECTIONS = { loading: 'connecting…', live: 'live', lost: 'connection lost, trying again' } as const
const FILTERED: ReadonlySet<View> = new Set(['tunnels', 'clients', 'log'])

function Page() {
  if (!isSignedIn.value) return <SignIn />
  const Body = BODIES[view.value]
  return (
    <div class="page">
      <header class="top">
        <h1>localtunnels</h1>
        <p class="tunnels quiet">
          {status.value !== undefined &&
            `${status.value.version}, up ${uptime(status.value.uptimeSeconds)}, ${status.value.connections} clients, ${status.value.requests} requests`}
        </p>
        <p class={`connection ${connection.value}`} role="status">
          {CONNECTIONS[connection.value]}
        </p>
        <button type="button" onClick={() => signOut()}>
          Sign out
        </button>
      </header>
      <nav class="tabs" aria-label="Views">
        {VIEWS.map((one, at) => (
          <button
            key={one}
            type="button"
            aria-current={view.value === one ? 'page' : undefined}
            title={`Key: ${at + 1}`}
            onClick={() => show(one)}
          >
            {TITLES[one]}
          </button>
        ))}
      </nav>
      <main class="wide">
        {FILTERED.has(view.value) && (
          <div class="form">
            <input
              id="filter"
              type="search"
              placeholder="Filter"
              aria-label="Filter"
              value={filter.value}
              onInput={event => (filter.value = event.currentTarget.value)}
            />
          </div>
        )}
        <Body />
      </main>
      <p class="toast" role="status" hidden={toast.value === ''}>
        {toast.value}
      </p>
      <Question />
    </div>
  )
}

function SignIn() {
  return (
    <main class="sign-in">
      <h1>localtunnels</h1>
      <form
        class="form"
        onSubmit={event => {
          event.preventDefault()
          const text = new FormData(event.currentTarget).get('token')
          signIn(typeof text === 'string' ? text.trim() : '')
        }}
      >
        <input
          name="token"
          type="password"
          required
          autocomplete="current-password"
          placeholder="admin token"
          aria-label="Admin token"
        />
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
      <p class="note" role="alert">
        {toast.value}
      </p>
      <p class="quiet">
        The token of the admin listener, as the server was started with. It is kept for this tab.
      </p>
    </main>
  )
}

function Question() {
  const dialog = useRef<HTMLDialogElement>(null)
  const { value } = question
  useEffect(() => {
    if (value !== undefined) dialog.current?.showModal()
    else dialog.current?.close()
  }, [value])
  const close = (): void => {
    question.value = undefined
  }
  return (
    <dialog ref={dialog} aria-labelledby="question" onClose={close}>
      <p id="question">{value?.text}</p>
      <div class="form">
        <button
          type="button"
          class="main"
          onClick={() => {
            void value?.yes()
            close()
          }}
        >
          Yes
        </button>
        <button type="button" onClick={close}>
          No
        </button>
      </div>
    </dialog>
  )
}

function uptime(seconds: number): string {
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} days`
}

/** Views by their number, the filter by `/`. */
function listenToKeys(): void {
  document.addEventListener('keydown', event => {
    const { target, key, ctrlKey, metaKey, altKey } = event
    if (ctrlKey || metaKey || altKey || !isSignedIn.value) return
    if (target instanceof HTMLElement && target.matches('input, select, textarea')) return
    const next = VIEWS[Number(key) - 1]
    if (next !== undefined) show(next)
    if (key === '/') {
      event.preventDefault()
      document.getElementById('filter')?.focus()
    }
  })
}

listenToKeys()
follow()
render(<Page />, document.body)
