// The differences of two exchanges: lines next to each other, with the changed words marked.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Diff, DiffPart, ExchangeRow, MessageDiff } from '../../exchange.ts'
import { clock } from '../parts/format.ts'
import { IconButton } from '../parts/icons.tsx'
import { api } from './api.ts'
import { detail, go, rows } from './signals.ts'

/** The number of exchanges to choose from. The address can name any other. */
const CHOICES = 50

export function Comparison({ a, b }: { readonly a: string; readonly b: string }) {
  const found = useSignal<Diff | undefined>(undefined)
  const fault = useSignal('')
  const hidesEqual = useSignal(true)
  useEffect(() => {
    fault.value = ''
    let isCurrent = true
    api.diff(a, b).then(
      diff => {
        if (isCurrent) found.value = diff
      },
      error => {
        if (isCurrent) fault.value = error.message
      },
    )
    return () => {
      isCurrent = false
    }
  }, [a, b])
  const { value } = found
  const diff = value?.a.id === a && value.b.id === b ? value : undefined
  return (
    <>
      <header class="head">
        <div class="line1">
          <IconButton icon="back" label="Back to the request" onClick={() => go({ id: b })} />
          <h2 class="words">Compare</h2>
          <label class="switch">
            <input
              type="checkbox"
              checked={hidesEqual.value}
              onChange={event => (hidesEqual.value = event.currentTarget.checked)}
            />
            Hide equal headers and Date
          </label>
        </div>
        <div class="line2 pick">
          <Choice label="Before" id={a} onChoose={id => go({ id: b, mode: 'compare', other: id })} />
          <span>→</span>
          <Choice label="After" id={b} onChoose={id => go({ id, mode: 'compare', other: a })} />
        </div>
      </header>
      {fault.value !== '' && (
        <p class="none" role="alert">
          {fault.value}
        </p>
      )}
      {diff !== undefined && (
        <div class="cmp">
          <Side title="Response" diff={diff.response} hidesEqual={hidesEqual.value} />
          <Side title="Request" diff={diff.request} hidesEqual={hidesEqual.value} />
        </div>
      )}
    </>
  )
}

function Choice({
  label,
  id,
  onChoose,
}: {
  readonly label: string
  readonly id: string
  readonly onChoose: (id: string) => void
}) {
  const some: ExchangeRow[] = rows.value.filter(({ method }) => method !== '').slice(0, CHOICES)
  const hasIt = some.some(row => row.id === id)
  const about = ({ status, method, path, event, startedAt }: ExchangeRow) =>
    `${status || 'failed'} ${method} ${(event ?? path).slice(0, 32)} · ${clock(startedAt)}`
  const own = rows.value.find(row => row.id === id) ?? (detail.value?.id === id ? detail.value : undefined)
  return (
    <select
      class="input"
      aria-label={label}
      value={id}
      onChange={event => onChoose(event.currentTarget.value)}
    >
      {!hasIt && <option value={id}>{`#${id}${own === undefined ? '' : ` · ${about(own)}`}`}</option>}
      {some.map(row => (
        <option key={row.id} value={row.id}>
          {`#${row.id} · ${about(row)}`}
        </option>
      ))}
    </select>
  )
}

function Side({
  title,
  diff: { first, fields, body },
  hidesEqual,
}: {
  readonly title: string
  readonly diff: MessageDiff
  readonly hidesEqual: boolean
}) {
  const different = fields.filter(({ isSame, name }) => !isSame && !(hidesEqual && NOISE.test(name)))
  const listed = hidesEqual ? different : fields
  const what = [
    !first.isSame && (title === 'Response' ? 'status' : 'first line'),
    different.length > 0 && `${different.length} ${different.length === 1 ? 'header' : 'headers'}`,
    !body.isSame && 'body',
  ].filter(Boolean)
  const isAlone = what.length === 1 && different.length < 2
  return (
    <section class="comparison">
      <div class="phead">
        <h3>{title}</h3>
        <span class="quiet">
          {what.length === 0 ? 'equal' : `${what.join(', ')} ${isAlone ? 'differs' : 'differ'}`}
        </span>
      </div>
      {(!first.isSame || !hidesEqual) && <Lines parts={partsOf(first.a, first.b)} />}
      {listed.length > 0 && (
        <>
          <h4>{title} headers</h4>
          {listed.map(({ name, a, b }, index) => (
            <Lines
              key={index}
              parts={partsOf(a === null ? null : `${name}: ${a}`, b === null ? null : `${name}: ${b}`)}
            />
          ))}
        </>
      )}
      {body.parts.length > 0 && !(body.isSame && hidesEqual) && (
        <>
          <h4>
            {title} body{' '}
            {body.kind === 'json' && <span class="quiet">numbers are compared as they were sent</span>}
          </h4>
          <Lines parts={body.parts} />
        </>
      )}
      {!body.isSame && body.parts.length === 0 && <p class="none">The bodies differ; they are no text.</p>}
      {body.kind === 'cut' && <p class="none">A body was not kept whole: only what is kept is compared.</p>}
    </section>
  )
}

function partsOf(a: string | null, b: string | null): readonly DiffPart[] {
  if (a === b && a !== null) return [{ op: 'same', text: a }]
  return [
    ...(a === null ? [] : [{ op: 'removed' as const, text: a }]),
    ...(b === null ? [] : [{ op: 'added' as const, text: b }]),
  ]
}

/** The headers that always differ without a meaning. */
const NOISE = /^(?:date|connection)$/i

/** The number of equal lines around a change. More become one line with their number. */
const CONTEXT = 3

function Lines({ parts }: { readonly parts: readonly DiffPart[] }) {
  const pairs: (readonly [string | undefined, string | undefined])[] = []
  const linesIn = ({ text }: DiffPart) => text.replace(/\n$/, '').split('\n')
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]!
    const next = parts[index + 1]
    if (part.op === 'same') for (const line of linesIn(part)) pairs.push([line, line])
    else if (part.op === 'removed' && next?.op === 'added') {
      const [before, after] = [linesIn(part), linesIn(next)]
      for (let at = 0; at < Math.max(before.length, after.length); at++) pairs.push([before[at], after[at]])
      index++
    } else
      for (const line of linesIn(part))
        pairs.push(part.op === 'removed' ? [line, undefined] : [undefined, line])
  }
  let left = 0
  let right = 0
  const isNear = (at: number) =>
    pairs.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(([a, b]) => a !== b)
  const hasChange = pairs.some(([a, b]) => a !== b)
  let isHidden = false
  return (
    <div class="diff">
      {pairs.map(([a, b], index) => {
        if (a !== undefined) left++
        if (b !== undefined) right++
        if (a === b) {
          if (hasChange && pairs.length > 40 && !isNear(index)) {
            const isFirst = !isHidden
            isHidden = true
            return isFirst ? (
              <div key={index} class="gap">
                ⋯
              </div>
            ) : null
          }
          isHidden = false
          return (
            <>
              <Line key={`${index} a`} tone="same" number={left} text={a ?? ''} />
              <Line key={`${index} b`} tone="same" number={right} text={b ?? ''} />
            </>
          )
        }
        isHidden = false
        const [from, ends] = a === undefined || b === undefined ? [0, 0] : sameEnds(a, b)
        return (
          <>
            {a === undefined ? (
              <div class="void" />
            ) : (
              <Line
                tone="minus"
                number={left}
                text={a}
                mark={[from, a.length - ends]}
                isPair={b !== undefined}
              />
            )}
            {b === undefined ? (
              <div class="void" />
            ) : (
              <Line
                tone="plus"
                number={right}
                text={b}
                mark={[from, b.length - ends]}
                isPair={a !== undefined}
              />
            )}
          </>
        )
      })}
    </div>
  )
}

/** Returns the number of equal characters at the beginning and at the end of both. */
function sameEnds(a: string, b: string): readonly [number, number] {
  const most = Math.min(a.length, b.length)
  let from = 0
  while (from < most && a[from] === b[from]) from++
  let ends = 0
  while (ends < most - from && a[a.length - 1 - ends] === b[b.length - 1 - ends]) ends++
  return [from, ends]
}

/** The changed part of a line above which it counts as another line. */
const MOST_MARKED = 0.6

function Line({
  tone,
  number,
  text,
  mark = [0, 0],
  isPair = false,
}: {
  readonly tone: 'same' | 'minus' | 'plus'
  readonly number: number
  readonly text: string
  readonly mark?: readonly [number, number]
  readonly isPair?: boolean
}) {
  // Two lines with little in common are marked as a whole.
  const isMarked = isPair && mark[1] > mark[0] && mark[1] - mark[0] < text.length * MOST_MARKED
  return (
    <div class={tone}>
      <span class="g">
        {tone !== 'same' && (
          <>
            <span class="sr">{tone === 'minus' ? 'removed ' : 'added '}</span>
            {tone === 'minus' ? '− ' : '+ '}
          </>
        )}
        {number}
      </span>
      <span>
        {isMarked ? (
          <>
            {text.slice(0, mark[0])}
            <mark>{text.slice(mark[0], mark[1])}</mark>
            {text.slice(mark[1])}
          </>
        ) : (
          text
        )}
      </span>
    </div>
  )
}
