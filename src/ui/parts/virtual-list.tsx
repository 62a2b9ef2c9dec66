// A list of any length, of which only the visible part is in the document.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface VirtualListProps<Item> {
  readonly items: readonly Item[]
  readonly rowHeight: number
  /** The row that stays visible. */
  readonly activeIndex: number
  readonly label: string
  readonly idOf: (item: Item) => string
  readonly onSelect: (item: Item) => void
  /** Called near the end if there are more after `items`. */
  readonly onMore?: (() => void) | undefined
  /** Called when the pointer entered the list, or left it. */
  readonly onAim?: (isOver: boolean) => void
  readonly onScroll?: (top: number) => void
  readonly children: (item: Item) => ComponentChildren
}

const BEYOND = 8
/** The number of rows before the end at which more are requested. */
const NEAR_END = 200

export function VirtualList<Item>({
  items,
  rowHeight,
  activeIndex,
  label,
  idOf,
  onSelect,
  onMore,
  onAim,
  onScroll,
  children,
}: VirtualListProps<Item>) {
  const box = useRef<HTMLDivElement>(null)
  const top = useSignal(0)
  const height = useSignal(600)
  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const observer = new ResizeObserver(() => {
      height.value = element.clientHeight
      // Keeps the column heads as wide as the rows, without the scroll bar.
      element.parentElement?.style.setProperty('--bar', `${element.offsetWidth - element.clientWidth}px`)
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      onAim?.(false)
      onScroll?.(0)
    }
  }, [height])
  useEffect(() => {
    const element = box.current
    if (element === null || activeIndex < 0) return
    const [from, to] = [activeIndex * rowHeight, (activeIndex + 1) * rowHeight]
    if (from < element.scrollTop) element.scrollTop = from
    else if (to > element.scrollTop + element.clientHeight) element.scrollTop = to - element.clientHeight
  }, [activeIndex, rowHeight])
  const first = Math.max(0, Math.floor(top.value / rowHeight) - BEYOND)
  const last = Math.min(items.length, Math.ceil((top.value + height.value) / rowHeight) + BEYOND)
  const isNearEnd = onMore !== undefined && last > items.length - NEAR_END
  useEffect(() => {
    if (isNearEnd) onMore?.()
  }, [isNearEnd, items.length])
  const active = items[activeIndex]
  return (
    <div
      class="rows"
      ref={box}
      role="listbox"
      tabIndex={0}
      aria-label={label}
      {...(active !== undefined &&
        activeIndex >= first &&
        activeIndex < last && { 'aria-activedescendant': `row-${idOf(active)}` })}
      onPointerEnter={() => onAim?.(true)}
      onPointerLeave={() => onAim?.(false)}
      onScroll={event => {
        top.value = event.currentTarget.scrollTop
        onScroll?.(event.currentTarget.scrollTop)
      }}
    >
      <div role="presentation" style={{ height: `${items.length * rowHeight}px`, position: 'relative' }}>
        {items.slice(first, last).map((item, offset) => (
          <div
            key={idOf(item)}
            id={`row-${idOf(item)}`}
            class="row cols"
            role="option"
            aria-selected={first + offset === activeIndex}
            aria-posinset={first + offset + 1}
            aria-setsize={onMore === undefined ? items.length : -1}
            style={{ top: `${(first + offset) * rowHeight}px`, height: `${rowHeight}px` }}
            onClick={() => onSelect(item)}
          >
            {children(item)}
          </div>
        ))}
      </div>
    </div>
  )
}
