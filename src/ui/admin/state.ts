// The state of the server on the page, read again every few seconds while the page is visible.

import { computed, signal } from '@preact/signals'
import type { MenuItem } from '../parts/menu.tsx'
import { at, hashOf, type Place, placeOf, textOf, type View } from './address.ts'
import { api, Refused, type TokenSecret, token, type Views } from './api.ts'

const ASK_MS = 3_000
const TOAST_MS = 6_000
/** The number of rows: fewer on a phone, where a row is higher. */
const ROWS = matchMedia('(max-width: 720px)').matches ? 30 : 100

export const isSignedIn = signal(token.get() !== '')
export const connection = signal<'loading' | 'live' | 'lost'>('loading')
export const place = signal<Place>(at('overview'))
/** The number of rows that a table shows. */
export const limit = signal(ROWS)
/** The outcome of the last action. */
export const toast = signal<{ readonly text: string; readonly isBad: boolean } | undefined>(undefined)
/** The action that the operator has to confirm. */
export const question = signal<Question | undefined>(undefined)
/** A token that was just created: shown once, and forgotten when the user opens something else. */
export const secret = signal<TokenSecret | undefined>(undefined)
/** Whether the form for a new token or ban is open. */
export const isAdding = signal(false)
const answers = signal<Partial<Views>>({})
export const head = computed(() => Object.values(answers.value).at(-1)?.head)

interface Question {
  /** The action with its object, in the words of the button. */
  readonly verb: string
  /** Its effect. */
  readonly text: string
  readonly yes: () => Promise<unknown>
}

/** An action of a menu that the operator has to confirm. */
export const confirmed = (label: string, ask: Question): MenuItem => ({
  label,
  isBad: true,
  act: () => {
    question.value = ask
  },
})

/** Returns the data of a view. `undefined` before it was read. */
export const seen = <Name extends View>(view: Name): Views[Name] | undefined => answers.value[view]

let asked = 0

/** Reads the data of everything visible. */
export async function refresh(): Promise<void> {
  if (!isSignedIn.value) return
  const { view, open = '', q, sort, only, range, tunnel, server } = place.value
  const query = { q, sort, only, range, tunnel: open || tunnel, server, limit: String(limit.value) }
  const own = ++asked
  try {
    const answer = await api.view(view, textOf(query))
    // The result of a later request is already there, or will come.
    if (own !== asked || !isSignedIn.value) return
    const { [view]: _, ...others } = answers.value
    answers.value = { ...others, [view]: answer }
    connection.value = 'live'
  } catch (error) {
    if (own !== asked) return
    if (error instanceof Refused && error.status === 401) return signOut('That is not the token.')
    connection.value = 'lost'
  }
}

export function signIn(text: string): void {
  token.set(text)
  isSignedIn.value = true
  toast.value = undefined
  connection.value = 'loading'
  void refresh()
}

export function signOut(why = ''): void {
  token.forget()
  // The next user who signs in here must not see earlier data.
  answers.value = {}
  secret.value = undefined
  question.value = undefined
  isSignedIn.value = false
  toast.value = why === '' ? undefined : { text: why, isBad: true }
}

let hiding: ReturnType<typeof setTimeout> | undefined

/** Shows a message. An error stays until the user closes it. */
export function say(text: string, isBad = false): void {
  clearTimeout(hiding)
  toast.value = { text, isBad }
  if (!isBad) hiding = setTimeout(() => (toast.value = undefined), TOAST_MS)
}

/** Runs an action, shows its result, and reads the new state. */
export async function act<Value>(
  what: Promise<Value>,
  done: string | ((value: Value) => string),
): Promise<void> {
  try {
    const value = await what
    say(typeof done === 'string' ? done : done(value))
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true)
  }
  await refresh()
}

/** Opens another view or sheet, to which Back returns. */
export function go(next: Partial<Place> & Pick<Place, 'view'>): void {
  location.hash = hashOf({ ...at(next.view), ...next })
}

/** Changes the same view. Back skips such changes, for example single letters. */
export function change(next: Partial<Place>): void {
  place.value = { ...place.value, ...next }
  history.replaceState(null, '', hashOf(place.value))
  void refresh()
}

export function showMore(): void {
  limit.value += ROWS
  void refresh()
}

export function follow(): void {
  take()
  addEventListener('hashchange', take)
  void refresh()
  setInterval(() => {
    if (document.visibilityState === 'visible') void refresh()
  }, ASK_MS)
}

/** Takes the token after # from a link, where no server sees it, and removes it from the address at once. */
function take(): void {
  const { hash } = location
  if (hash.length > 1 && !hash.startsWith('#/')) {
    history.replaceState(null, '', location.pathname)
    return signIn(decodeURIComponent(hash.slice(1)))
  }
  const next = placeOf(hash)
  if (next.view !== place.value.view) {
    limit.value = ROWS
    secret.value = undefined
    isAdding.value = false
  }
  place.value = next
  void refresh()
}
