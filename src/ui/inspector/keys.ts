// The keys of the page, which the help also lists.

import { signal } from '@preact/signals'
import {
  compare,
  copyAs,
  copyLink,
  edit,
  move,
  remove,
  replay,
  selectNewest,
  selectOldest,
  togglePause,
  togglePin,
} from './actions.ts'
import { go, isHelpOpen, isRevealed, mode, selectedId, setFilter } from './signals.ts'

interface Key {
  readonly keys: readonly string[]
  readonly meaning: string
  /** Where the key works: `list`, if the focus is in the list or nowhere. Default anywhere. */
  readonly where?: 'list'
  press(): void
}

const SETTING = 'one-key shortcuts'
/** Whether single-letter keys work. WCAG 2.1.4 requires that they can be turned off. */
export const hasShortcuts = signal(localStorage.getItem(SETTING) !== 'off')

export function setShortcuts(isOn: boolean): void {
  hasShortcuts.value = isOn
  localStorage.setItem(SETTING, isOn ? 'on' : 'off')
}

const one = (selector: string) => document.querySelector<HTMLElement>(selector)

export const KEYS: readonly Key[] = [
  { keys: ['j', 'ArrowDown'], meaning: 'next request', press: () => move(1) },
  { keys: ['k', 'ArrowUp'], meaning: 'previous request', press: () => move(-1) },
  { keys: ['Home'], meaning: 'newest', where: 'list', press: selectNewest },
  { keys: ['End'], meaning: 'oldest', where: 'list', press: () => void selectOldest() },
  { keys: [' '], meaning: 'pause or continue', where: 'list', press: togglePause },
  { keys: ['/'], meaning: 'filter', press: () => one('#filter')?.focus() },
  { keys: ['1'], meaning: 'request', press: () => one('#request')?.scrollIntoView() },
  { keys: ['2'], meaning: 'response', press: () => one('#response')?.scrollIntoView() },
  { keys: ['h'], meaning: 'fold or open headers', press: foldAll },
  { keys: ['r'], meaning: 'replay', press: () => void replay() },
  { keys: ['e'], meaning: 'edit and replay', press: edit },
  { keys: ['d'], meaning: 'compare', press: compare },
  { keys: ['c'], meaning: 'copy as curl', press: () => void copyAs('curl') },
  { keys: ['l'], meaning: 'copy link', press: () => void copyLink() },
  { keys: ['p'], meaning: 'pin', press: () => void togglePin() },
  { keys: ['n'], meaning: 'note', press: () => one('#note')?.focus() },
  { keys: ['s'], meaning: 'show secrets', press: () => (isRevealed.value = !isRevealed.value) },
  { keys: ['x'], meaning: 'delete, with undo', press: remove },
  { keys: ['F6'], meaning: 'next area', press: nextArea },
  { keys: ['?'], meaning: 'this list', press: () => (isHelpOpen.value = true) },
]

function foldAll(): void {
  const folds = [...document.querySelectorAll<HTMLDetailsElement>('.detail .fold')]
  const isOpen = folds.some(fold => !fold.open)
  for (const fold of folds) fold.open = isOpen
}

function nextArea(): void {
  const areas = [one('#filter'), one('.rows'), one('.detail button')].filter(area => area !== null)
  const here = areas.findIndex(area =>
    area.closest('.filterbar, .rows, .detail')?.contains(document.activeElement),
  )
  areas[(here + 1) % areas.length]?.focus()
}

/** Leaves a field, then a dialog over the list, then the filter. */
function leave(target: HTMLElement, isTyping: boolean): void {
  if (isTyping) target.blur()
  else if (mode.peek() !== '') go({ id: selectedId.peek() })
  else if (selectedId.peek() !== undefined) go({ id: undefined })
  else setFilter('')
}

export function listenToKeys(): void {
  addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return
    const focused = event.target instanceof HTMLElement ? event.target : document.body
    const box = focused.closest('dialog')
    if (box?.open === true) return
    // A closed dialog may keep the focus for a frame.
    const target = box === null && focused.isConnected ? focused : document.body
    const isTyping =
      target.isContentEditable ||
      (/^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName) &&
        !(target as HTMLInputElement).matches('[type=checkbox]'))
    if (event.key === 'Escape') {
      event.preventDefault()
      leave(target, isTyping)
      return
    }
    if (isTyping) return
    const key = KEYS.find(({ keys }) => keys.includes(event.key))
    if (key === undefined || (event.key.length === 1 && event.key !== ' ' && !hasShortcuts.peek())) return
    const isInList = target === document.body || target.closest('.list') !== null
    // Arrow keys scroll the focused area, and Space presses a button.
    if ((key.where === 'list' || event.key.startsWith('Arrow')) && !isInList) return
    if (event.key === ' ' && target.closest('button, a, summary') !== null) return
    event.preventDefault()
    key.press()
  })
}
