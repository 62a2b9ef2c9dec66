// What differs between two exchanges.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Diff, MessageDiff } from '../../client/inspect/exchange.ts'
import { api } from './api.ts'

const SIGNS = { same: ' ', removed: '−', added: '+' } as const

export function Comparison({ a, b }: { readonly a: string; readonly b: string }) {
  const found = useSignal<Diff | undefined>(undefined)
  const fault = useSignal('')
  useEffect(() => {
    found.value = undefined
    api.diff(a, b).then(
      diff => (found.value = diff),
      error => (fault.value = error.message),
    )
  }, [a, b, found, fault])
  if (fault.value !== '') return <p class="note">{fault.value}</p>
  if (found.value === undefined) return <p class="quiet">Loading…</p>
  return (
    <>
      <Side title="Answer" diff={found.value.answer} />
      <Side title="Request" diff={found.value.request} />
    </>
  )
}

function Side({
  title,
  diff: { first, fields, body },
}: {
  readonly title: string
  readonly diff: MessageDiff
}) {
  const changed = fields.filter(({ isSame }) => !isSame)
  const isSame = first.isSame && changed.length === 0 && body.isSame
  return (
    <section class="comparison">
      <h3>
        {title} {isSame && <span class="quiet">is the same</span>}
      </h3>
      {!first.isSame && (
        <Lines
          parts={[
            ['removed', first.a],
            ['added', first.b],
          ]}
        />
      )}
      {changed.map(({ name, a, b }, index) => (
        <Lines
          key={index}
          parts={[
            ['removed', a === null ? null : `${name}: ${a}`],
            ['added', b === null ? null : `${name}: ${b}`],
          ]}
        />
      ))}
      {!body.isSame && body.parts.length === 0 && <p class="quiet">The bodies differ.</p>}
      {!body.isSame && <Lines parts={body.parts.map(({ op, text }) => [op, text] as const)} />}
      {body.kind === 'cut' && <p class="note">A body was not kept whole: only what is kept is compared.</p>}
    </section>
  )
}

function Lines({ parts }: { readonly parts: readonly (readonly [keyof typeof SIGNS, string | null])[] }) {
  return (
    <pre class="diff">
      {parts.map(
        ([op, text], index) =>
          text !== null && (
            <span key={index} class={op}>
              {text
                .replace(/\n$/, '')
                .split('\n')
                .map(line => `${SIGNS[op]} ${line}\n`)
                .join('')}
            </span>
          ),
      )}
    </pre>
  )
}
