// Title and icon of the tab: they name the client, and a red dot marks an error that came while the tab was hidden.

import { effect, signal } from '@preact/signals'
import mark from '../mark.svg' with { type: 'text' }
import { rows, session, shown } from './signals.ts'

const hasErrors = signal(false)

export function followTitle(): void {
  effect(() => {
    const names = [...new Set(session.value?.tunnels.map(({ name }) => name))].join(', ')
    const of = [names, 'localtunnels'].filter(Boolean).join(' · ')
    const { value } = shown
    document.title =
      value === undefined
        ? `${of} inspector`
        : `${value.status || 'failed'} ${value.event ?? `${value.method} ${value.path}`} · ${of}`
  })
  let newest = Number.POSITIVE_INFINITY
  effect(() => {
    const isBad = rows.value.some(
      ({ id, state, status }) => Number(id) > newest && (state === 'failed' || status >= 500),
    )
    if (document.hidden && isBad) hasErrors.value = true
    // The first list contains nothing new.
    if (!document.hidden) newest = Number(rows.value[0]?.id ?? 0)
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) newest = Number(rows.peek()[0]?.id ?? 0)
    else hasErrors.value = false
  })
  effect(() => {
    const dot = '<circle cx="12.5" cy="12.5" r="3.5" fill="#d0312d"/></svg>'
    const drawn = hasErrors.value ? mark.replace('</svg>', dot) : mark
    const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')
    if (link !== null) link.href = `data:image/svg+xml,${encodeURIComponent(drawn)}`
  })
}
