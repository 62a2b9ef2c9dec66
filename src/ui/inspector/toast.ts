// One line about the last action, for six seconds, in which it can be undone.

import { signal } from '@preact/signals'

const SHOWN_MS = 6_000

interface Toast {
  readonly text: string
  readonly undo?: () => void
}

export const toast = signal<Toast | undefined>(undefined)
let hiding: ReturnType<typeof setTimeout> | undefined
/** The action to finish when it can no longer be undone. */
let finally_: (() => void) | undefined

export function say(
  text: string,
  undoing?: { readonly undo: () => void; readonly commit: () => void },
): void {
  dismiss()
  finally_ = undoing?.commit
  toast.value = {
    text,
    ...(undoing && {
      undo: () => {
        finally_ = undefined
        dismiss()
        undoing.undo()
      },
    }),
  }
  hiding = setTimeout(dismiss, SHOWN_MS)
}

export function dismiss(): void {
  clearTimeout(hiding)
  toast.value = undefined
  const commit = finally_
  finally_ = undefined
  commit?.()
}
