// The filter: a field with suggestions, chips for common filters, and the number of matches.

import { computed, useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { FILTER_KEYS, FILTER_STATES, isFilterFault, parseFilter } from '../../exchange-filter.ts'
import { Icon } from '../parts/icons.tsx'
import { visible } from './held.ts'
import {
  draft,
  filter,
  filterFault,
  hasMore,
  isRead,
  isSearching,
  rows,
  session,
  setFilter,
} from './signals.ts'

const TYPING_MS = 200
const MAX_SUGGESTED = 24
/** The suggestions before the user types. */
const HINTS: readonly (readonly [string, string])[] = [
  ['is:error', '5xx, failed or refused'],
  ['is:webhook', 'with a signature that is checked'],
  ['status:4xx', 'or status:404'],
  ['event:invoice.paid', 'name of a webhook or operation'],
  ['path:/api/*', '* for anything'],
  ['slower:500ms', 'took longer'],
  ['body:"red hat"', 'text in either body'],
  ['method:POST', ''],
]

/** Returns suggestions. A key with its value replaces the typed text. */
function suggestionsFor(text: string): readonly (readonly [string, string])[] {
  const last = text.split(/\s+/).at(-1) ?? ''
  const minus = last.startsWith('-') ? '-' : ''
  const typed = last.slice(minus.length).toLowerCase()
  const [key, value] = typed.split(':', 2)
  const known: (readonly [string, string])[] =
    value === undefined
      ? [...HINTS, ...FILTER_KEYS.map(name => [`${name}:`, ''] as const)]
      : valuesOf(key ?? '').map(one => [`${key}:${one}`, ''] as const)
  return known
    .filter(([one]) => one.startsWith(typed) && one !== typed)
    .slice(0, MAX_SUGGESTED)
    .map(([one, about]) => [`${minus}${one}`, about])
}

/** Returns the values of the loaded rows. */
function valuesOf(key: string): readonly string[] {
  const fromRows = (read: (row: (typeof rows.value)[number]) => string | undefined) => [
    ...new Set(rows.value.slice(0, 500).flatMap(row => read(row) ?? [])),
  ]
  switch (key) {
    case 'is':
      return FILTER_STATES
    case 'method':
      return fromRows(({ method }) => method.toLowerCase() || undefined)
    case 'tunnel':
      return session.value?.tunnels.map(({ name }) => name) ?? []
    case 'status':
      return ['2xx', '3xx', '4xx', '5xx', ...fromRows(({ status }) => `${status}`), 'none']
    case 'event':
      return fromRows(({ event }) => event?.toLowerCase())
    case 'code':
      return fromRows(({ code }) => code?.toLowerCase())
    case 'slower':
      return ['100ms', '500ms', '1s', '10s']
    default:
      return []
  }
}

let typing: ReturnType<typeof setTimeout> | undefined

/** Sets the filter. `now`: without the pause for typing. */
function write(text: string, now = false): void {
  draft.value = text
  clearTimeout(typing)
  if (now) setFilter(text)
  // A key waits for its value.
  else if (text.endsWith(':')) return
  else typing = setTimeout(() => setFilter(text), TYPING_MS)
}

export function FilterBar() {
  return (
    <search class="filterbar">
      <Field />
      <Chips />
      <p
        id="filter-fault"
        class="fault"
        role="alert"
        hidden={filterFault.value === '' || filter.value === ''}
      >
        {filterFault.value}
      </p>
    </search>
  )
}

function Field() {
  const isOpen = useSignal(false)
  const active = useSignal(-1)
  const input = useRef<HTMLInputElement>(null)
  const suggestions = isOpen.value ? suggestionsFor(draft.value) : []
  const take = (one: string) => {
    const text = [...draft.value.split(/\s+/).slice(0, -1), one].join(' ')
    active.value = -1
    // A key alone waits for its value.
    write(text, !one.endsWith(':'))
    if (!one.endsWith(':')) isOpen.value = false
    input.current?.focus()
  }
  const press = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0 && suggestions.length > 0) {
      active.value = (active.value + step + suggestions.length) % suggestions.length
      event.preventDefault()
    } else if (event.key === 'Enter') {
      const chosen = suggestions[active.value]
      if (chosen !== undefined) take(chosen[0])
      else {
        write(draft.value, true)
        isOpen.value = false
        document.querySelector<HTMLElement>('.rows')?.focus()
      }
    } else if (event.key === 'Escape' && isOpen.value && active.value >= 0) {
      isOpen.value = false
      event.preventDefault()
    }
  }
  const hasFault = filterFault.value !== '' && filter.value !== ''
  return (
    <div class={`field ${hasFault ? 'has-fault' : ''}`}>
      <span class="glass">
        <Icon name="search" />
      </span>
      <input
        id="filter"
        ref={input}
        role="combobox"
        aria-label="Filter"
        aria-expanded={suggestions.length > 0}
        aria-controls="suggest"
        aria-autocomplete="list"
        aria-invalid={hasFault}
        aria-describedby="filter-fault"
        {...(suggestions[active.value] !== undefined && {
          'aria-activedescendant': `suggest-${active.value}`,
        })}
        placeholder={'Filter: status:5xx  path:/hooks/*  body:"invoice"'}
        autocomplete="off"
        spellcheck={false}
        value={draft.value}
        onInput={event => {
          active.value = -1
          isOpen.value = true
          write(event.currentTarget.value)
        }}
        onFocus={() => (isOpen.value = true)}
        onBlur={() => (isOpen.value = false)}
        onKeyDown={press}
      />
      <Count />
      <kbd class="kbd">/</kbd>
      <div
        class="menu suggest"
        id="suggest"
        role="listbox"
        aria-label="Suggestions"
        hidden={suggestions.length === 0}
      >
        {suggestions.map(([one, about], index) => (
          <div
            key={one}
            id={`suggest-${index}`}
            role="option"
            aria-selected={index === active.value}
            // The field keeps the focus.
            onPointerDown={event => event.preventDefault()}
            onClick={() => take(one)}
          >
            <code>{one}</code>
            <span class="quiet">{about}</span>
          </div>
        ))}
      </div>
    </div>
  )
}

function Count() {
  const shown = `${visible.value.length.toLocaleString('en')}${hasMore.value ? '+' : ''}`
  if (!isRead.value) return <span class="quiet count" />
  const text = isSearching.value
    ? 'searching…'
    : filter.value === ''
      ? shown
      : `${shown} of ${(session.value?.used.exchanges ?? 0).toLocaleString('en')}`
  return (
    <span class="quiet count" role="status">
      {text}
    </span>
  )
}

const chips = computed(
  () =>
    [
      ['is:error', 'Errors'],
      ['is:webhook', 'Webhooks'],
      ['slower:1s', 'Slow'],
      ...((session.value?.tunnels.length ?? 0) > 1
        ? [...new Set(session.value?.tunnels.map(({ name }) => name))].map(
            name => [`tunnel:${name}`, name] as const,
          )
        : []),
    ] as readonly (readonly [string, string])[],
)

/** The number of matching rows for each chip with the current filter, if all rows are loaded. */
const counts = computed(() => {
  const found = new Map<string, number>()
  if (hasMore.value || isSearching.value) return found
  for (const [text] of chips.value) {
    // The chip of another tunnel replaces it.
    if (text.startsWith('tunnel:') && /(?:^|\s)tunnel:/.test(filter.value)) continue
    const test = parseFilter(text)
    if (!isFilterFault(test)) found.set(text, rows.value.filter(row => test.matches(row)).length)
  }
  return found
})

function Chips() {
  if (session.value === undefined || session.value.used.exchanges === 0) return null
  const terms = filter.value.split(/\s+/).filter(Boolean)
  const toggle = (one: string) => {
    const isOne = (term: string) => term.startsWith('tunnel:') && one.startsWith('tunnel:')
    const rest = terms.filter(term => term !== one && !isOne(term))
    write((terms.includes(one) ? rest : [...rest, one]).join(' '), true)
  }
  return (
    <div class="chips" role="group" aria-label="Quick filters">
      {chips.value.map(([text, label]) => (
        <button
          type="button"
          key={text}
          class="chip"
          aria-pressed={terms.includes(text)}
          onClick={() => toggle(text)}
        >
          {label} <b>{counts.value.get(text)}</b>
        </button>
      ))}
    </div>
  )
}
