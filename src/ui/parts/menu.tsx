// A button that opens a menu. Arrows, Home and End move in it; Escape and Tab close it and return the focus.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Icon } from './icons.tsx'

export interface MenuItem {
  readonly label: string
  readonly key?: string | undefined
  /** Whether the item is on, if it is a choice. */
  readonly isChecked?: boolean
  readonly isBad?: boolean
  /** Why the action is not possible now. */
  readonly why?: string | undefined
  act(): void
}

interface MenuProps {
  readonly label: string
  readonly class?: string
  readonly at: 'left' | 'right'
  readonly isOff?: boolean | undefined
  /** The items. `undefined`: a line. */
  readonly items: readonly (MenuItem | undefined)[]
  readonly children: ComponentChildren
}

export function Menu({
  label,
  class: name = 'btn bare icon',
  at,
  isOff = false,
  items,
  children,
}: MenuProps) {
  const isOpen = useSignal(false)
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)
  const close = (returns = true) => {
    isOpen.value = false
    if (returns) button.current?.focus()
  }
  // Before the next key, which is already for the menu.
  useLayoutEffect(() => {
    if (!isOpen.value) return undefined
    list.current?.querySelector('button')?.focus()
    const leave = (event: Event) => {
      const { target } = event
      if (target instanceof Node && !list.current?.contains(target) && !button.current?.contains(target))
        close(false)
    }
    document.addEventListener('pointerdown', leave)
    return () => document.removeEventListener('pointerdown', leave)
  }, [isOpen.value])
  const move = (event: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll('button') ?? [])]
    const here = all.findIndex(one => one.matches(':focus'))
    const next: Readonly<Record<string, number>> = {
      ArrowDown: (here + 1) % all.length,
      ArrowUp: (here + all.length - 1) % all.length,
      Home: 0,
      End: all.length - 1,
    }
    if (event.key === 'Escape' || event.key === 'Tab') close()
    else if (next[event.key] !== undefined) all[next[event.key]!]?.focus()
    else {
      // Keys do not reach the page while the menu is open.
      event.stopPropagation()
      return
    }
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <span class="menu-box">
      <button
        type="button"
        ref={button}
        class={name}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen.value}
        aria-disabled={isOff}
        onClick={() => {
          if (!isOff) isOpen.value = !isOpen.value
        }}
      >
        {children}
      </button>
      {isOpen.value && (
        <div class={`menu ${at}`} role="menu" aria-label={label} ref={list} onKeyDown={move}>
          {items.map((item, index) =>
            item === undefined ? (
              <hr key={index} />
            ) : (
              <button
                key={index}
                type="button"
                tabIndex={-1}
                class={item.isBad === true ? 'is-bad' : ''}
                title={item.why}
                aria-disabled={item.why !== undefined}
                {...(item.isChecked === undefined
                  ? { role: 'menuitem' as const }
                  : { role: 'menuitemcheckbox' as const, 'aria-checked': item.isChecked })}
                onClick={() => {
                  if (item.isChecked === undefined) close()
                  item.act()
                }}
              >
                <span class="grow">{item.label}</span>
                {item.isChecked === true && <Icon name="ok" />}
                {item.key !== undefined && <kbd class="kbd">{item.key}</kbd>}
              </button>
            ),
          )}
        </div>
      )}
    </span>
  )
}
