// Keys of the page. The help lists them from here.

import { compare, copyAs, move, openEditor, remove, replay, togglePin } from './actions.ts'
import { dialog, filter, isRevealed, rows, select, selectedId, selectOldest, type Tab, tab } from './state.ts'

export interface Key {
  readonly keys: readonly string[]
  readonly meaning: string
  press(): void
}

const focus = (selector: string): void => document.querySelector<HTMLElement>(selector)?.focus()
const turn = (to: Tab) => () => {
  tab.value = to
}

export const KEYS: readonly Key[] = [
  { keys: ['j', 'ArrowDown'], meaning: 'next', press: () => move(1) },
  { keys: ['k', 'ArrowUp'], meaning: 'previous', press: () => move(-1) },
  { keys: ['Home'], meaning: 'newest', press: () => select(rows.value[0]?.id) },
  { keys: ['End'], meaning: 'oldest', press: () => void selectOldest() },
  { keys: ['/'], meaning: 'filter', press: () => focus('#filter') },
  { keys: ['r'], meaning: 'replay, without a choice the newest', press: () => void replay() },
  { keys: ['e'], meaning: 'edit and replay', press: openEditor },
  { keys: ['d'], meaning: 'compare answers', press: compare },
  { keys: ['c'], meaning: 'copy as curl', press: () => void copyAs('curl') },
  { keys: ['p'], meaning: 'pin', press: () => void togglePin() },
  { keys: ['n'], meaning: 'note', press: () => focus('#note') },
  { keys: ['s'], meaning: 'show secrets', press: () => (isRevealed.value = !isRevealed.value) },
  { keys: ['x'], meaning: 'delete', press: () => void remove() },
  { keys: ['1'], meaning: 'request', press: turn('request') },
  { keys: ['2'], meaning: 'answer', press: turn('answer') },
  { keys: ['3'], meaning: 'messages', press: turn('messages') },
  { keys: ['?'], meaning: 'this help', press: () => (dialog.value = 'help') },
]

export function listenToKeys(): void {
  addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    const { target } = event
    const isTyping =
      target instanceof HTMLElement &&
      (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    if (event.key === 'Escape') {
      if (isTyping) (target as HTMLElement).blur()
      else if (dialog.value !== undefined) dialog.value = undefined
      else if (selectedId.value !== undefined) select(undefined)
      else filter.value = ''
      return
    }
    if (isTyping || dialog.value !== undefined) return
    const key = KEYS.find(({ keys }) => keys.includes(event.key))
    if (key === undefined) return
    event.preventDefault()
    key.press()
  })
}
