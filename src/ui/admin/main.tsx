// The page of the admin listener.

import '../tokens.css'
import '../ui.css'
import './admin.css'
import { computed, effect } from '@preact/signals'
import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon, Mark } from '../parts/icons.tsx'
import { at, hashOf, VIEWS, type View } from './address.ts'
import { Bans } from './bans.tsx'
import { Clients } from './clients.tsx'
import { Log } from './log.tsx'
import { Overview } from './overview.tsx'
import { Servers, Traffic } from './servers.tsx'
import { connection, follow, go, head, isSignedIn, place, question, signIn, signOut, toast } from './state.ts'
import { Tokens } from './tokens.tsx'
import { Tunnels } from './tunnels.tsx'
import { span } from './words.tsx'

const titleOf = (view: View) => view.charAt(0).toUpperCase() + view.slice(1)
const BODIES: Readonly<Record<View, () => preact.JSX.Element>> = {
  overview: Overview,
  tunnels: Tunnels,
  clients: Clients,
  traffic: Traffic,
  tokens: Tokens,
  bans: Bans,
  log: Log,
  servers: Servers,
}
const CONNECTIONS = {
  loading: ['', 'Connecting'],
  live: ['ok', 'Live'],
  lost: ['bad', 'Lost, trying again'],
} as const

function Page() {
  if (!isSignedIn.value) return <SignIn />
  const { view } = place.value
  const Body = BODIES[view]
  const [look, text] = CONNECTIONS[connection.value]
  const counts: Readonly<Partial<Record<View, number>>> = head.value?.counts ?? {}
  return (
    <>
      <header class="top">
        <a class="brand" href={hashOf(at('overview'))}>
          <Mark />
          localtunnels
        </a>
        <span class="quiet cut hide-s">{head.value?.domain}</span>
        <span class="grow" />
        {head.value !== undefined && (
          <span class="quiet hide-s">
            {head.value.counts.servers === 1 ? '1 server' : `${head.value.counts.servers} servers`} ·{' '}
            {head.value.version} · up {span(head.value.uptimeSeconds)}
          </span>
        )}
        <span class="liveness" role="status">
          <span class={`dot ${look}`} />
          {text}
        </span>
        <button type="button" class="btn bare" onClick={() => signOut()}>
          Sign out
        </button>
      </header>
      <div class="frame">
        <nav class="side" aria-label="Views">
          {VIEWS.map(one => (
            <a key={one} href={hashOf(at(one))} aria-current={view === one ? 'page' : undefined}>
              {titleOf(one)}
              {counts[one] !== undefined && <span>{counts[one].toLocaleString('en-US')}</span>}
            </a>
          ))}
        </nav>
        <main tabIndex={-1}>
          <Body />
        </main>
      </div>
      {toast.value !== undefined && (
        <div class="toast" role={toast.value.isBad ? 'alert' : 'status'}>
          {toast.value.text}
          <button type="button" aria-label="Dismiss" onClick={() => (toast.value = undefined)}>
            <Icon name="close" />
          </button>
        </div>
      )}
      {question.value !== undefined && <Ask />}
    </>
  )
}

function SignIn() {
  return (
    <main class="sign-in">
      <h1 class="brand">
        <Mark />
        localtunnels
      </h1>
      <form
        onSubmit={event => {
          event.preventDefault()
          const text = new FormData(event.currentTarget).get('token')
          signIn(typeof text === 'string' ? text.trim() : '')
        }}
      >
        <label for="token">Admin token</label>
        <input
          id="token"
          class="input"
          name="token"
          type="password"
          required
          autocomplete="current-password"
        />
        <button type="submit" class="btn main big">
          Sign in
        </button>
      </form>
      <p class="is-bad" role="alert">
        {toast.value?.text}
      </p>
      <p class="quiet">The server was started with this token. It is kept for this tab.</p>
    </main>
  )
}

/** Asks before an action that cannot be undone: its button is named, and the other has the focus. */
function Ask() {
  const dialog = useRef<HTMLDialogElement>(null)
  const { value } = question
  useEffect(() => dialog.current?.showModal(), [])
  const close = (): void => {
    question.value = undefined
  }
  return (
    <dialog ref={dialog} aria-labelledby="question" onClose={close}>
      <div class="confirm">
        <h2 id="question">{value?.verb}?</h2>
        <p class="second">{value?.text}</p>
        <div class="btns">
          <button type="button" class="btn" autofocus onClick={close}>
            Cancel
          </button>
          <button
            type="button"
            class="btn danger"
            onClick={() => {
              void value?.yes()
              close()
            }}
          >
            {value?.verb}
          </button>
        </div>
      </div>
    </dialog>
  )
}

/** Opens views by their number, and the filter by `/`. */
function listenToKeys(): void {
  document.addEventListener('keydown', event => {
    const { target, key, ctrlKey, metaKey, altKey } = event
    if (ctrlKey || metaKey || altKey || !isSignedIn.value) return
    if (target instanceof HTMLElement && target.matches('input, select, textarea, dialog[open] *')) return
    const view = VIEWS[Number(key) - 1]
    if (view !== undefined) go({ view })
    if (key === '/') {
      event.preventDefault()
      document.getElementById('filter')?.focus()
    }
  })
}

effect(() => {
  const { view, open } = place.value
  const domain = head.value === undefined ? '' : ` · ${head.value.domain}`
  document.title = `${open ?? titleOf(view)}${domain} · localtunnels admin`
})
/** A phone shows some of the views. */
const chosen = computed(() => isSignedIn.value && place.value.view)
effect(() => {
  if (!chosen.value) return
  const show = () => document.querySelector('.side [aria-current]')?.scrollIntoView({ inline: 'nearest' })
  requestAnimationFrame(show)
})
listenToKeys()
follow()
render(<Page />, document.body)
