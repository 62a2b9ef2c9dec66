// Names and values: headers, a query, a form. Long values are folded to two lines, and each can be copied.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { type Field, MASK } from '../../exchange.ts'
import { Icon, IconButton } from '../parts/icons.tsx'
import { copyText } from './actions.ts'
import { isRevealed } from './signals.ts'
import { say } from './toast.ts'

export function Fields({ fields }: { readonly fields: readonly (readonly [string, string, boolean?])[] }) {
  return (
    <table class="kv">
      <tbody>
        {fields.map(([name, value, isSecret], index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>{isSecret === true && !isRevealed.value ? <Secret /> : <Value text={value} />}</td>
            <td class="act">
              <IconButton
                icon="copy"
                label={`Copy ${name}`}
                title="Copy value"
                onClick={() => {
                  if (value === MASK) say(`${name} is hidden. Show secrets (s), then copy it`)
                  else void copyText(value, `Copied ${name}`)
                }}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Secret() {
  return (
    <button type="button" class="secret" title="Show secrets (s)" onClick={() => (isRevealed.value = true)}>
      •••••• hidden
    </button>
  )
}

const LONG_CHARS = 120

function Value({ text }: { readonly text: string }) {
  const isOpen = useSignal(false)
  if (text.length < LONG_CHARS) return <>{text}</>
  return (
    <button
      type="button"
      class={isOpen.value ? '' : 'clamp'}
      aria-expanded={isOpen.value}
      onClick={() => (isOpen.value = !isOpen.value)}
    >
      {text}
    </button>
  )
}

interface FoldProps {
  readonly name: string
  /** The number after the title. The state open or closed is remembered for it. */
  readonly count?: number | string
  readonly glance: string
  readonly isOpen?: boolean
  readonly children: ComponentChildren
}

const opened = new Map<string, boolean>()

export function Fold({ name, count, glance, isOpen = false, children }: FoldProps) {
  return (
    <details
      class="fold"
      open={opened.get(name) ?? isOpen}
      onToggle={event => opened.set(name, event.currentTarget.open)}
    >
      <summary>
        <Icon name="right" />
        {name} {count !== undefined && <span class="n">{count}</span>}
        <span class="cut">{glance}</span>
      </summary>
      {children}
    </details>
  )
}

export function Headers({ name, fields }: { readonly name: string; readonly fields: readonly Field[] }) {
  if (fields.length === 0) return null
  const glance = fields
    .slice(0, 3)
    .map(field => `${field.name}: ${field.isSecret === true ? '••••••' : field.value}`)
  return (
    <Fold name={name} count={fields.length} glance={glance.join('  ')}>
      <Fields fields={fields.map(field => [field.name, field.value, field.isSecret === true])} />
    </Fold>
  )
}

/** The parameters of a URL, decoded. */
export function Query({ path, isOpen }: { readonly path: string; readonly isOpen: boolean }) {
  const query = [...new URLSearchParams(path.split('?').slice(1).join('?'))]
  if (query.length === 0) return null
  return (
    <Fold
      name="Query"
      count={query.length}
      glance={query
        .map(([name, value]) => `${name}: ${value}`)
        .slice(0, 3)
        .join('  ')}
      isOpen={isOpen}
    >
      <Fields fields={query} />
    </Fold>
  )
}
