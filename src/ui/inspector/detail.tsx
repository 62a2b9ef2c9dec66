// One exchange in full: what can be done with it, its times, its two messages.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ExchangeDetail, Message, Times } from '../../client/inspect/exchange.ts'
import { bytes, duration } from '../parts/format.ts'
import { compare, copyAs, FORMATS, openEditor, remove, replay, saveNote, togglePin } from './actions.ts'
import type { Side } from './api.ts'
import { Body } from './body.tsx'
import { Comparison } from './comparison.tsx'
import { Status } from './list.tsx'
import { Messages } from './messages.tsx'
import { detail, isRevealed, otherId, select, type Tab, tab } from './state.ts'

export function Detail() {
  const { value } = detail
  if (value === undefined)
    return (
      <div class="empty">
        <p>Choose an exchange, or press ? for the keys.</p>
      </div>
    )
  const tabs = tabsOf(value)
  const current = tabs.some(([one]) => one === tab.value) ? tab.value : 'request'
  return (
    <article class="detail" aria-label={`${value.method} ${value.path}`}>
      <header class="title">
        <button type="button" class="back" onClick={() => select(undefined)}>
          ← List
        </button>
        <h2>
          <Status row={value} /> <b>{value.method || value.kind.toUpperCase()}</b>{' '}
          <span class="path">{value.path}</span>
        </h2>
        <p class="quiet">
          {new Date(value.startedAt).toLocaleString()} · {value.host || value.tunnel}
          {value.service !== '' && ` → ${value.service}`}
          {value.visitor !== undefined && ` · from ${value.visitor}`}
        </p>
        {value.code !== undefined && (
          <p class="note">
            {value.isRefused ? 'Refused by the server' : 'Failed'}: <code>{value.code}</code>
            {value.explanation !== undefined && ` · ${value.explanation}`}
          </p>
        )}
        {value.isIncomplete && (
          <p class="note">The capture fell behind: bytes of this exchange are missing here.</p>
        )}
        {value.verified !== undefined && (
          <p class={value.verified.isValid ? 'quiet' : 'note'}>
            Signature of {value.verified.provider}:{' '}
            {value.verified.isValid ? 'right' : (value.verified.reason ?? 'wrong')}
          </p>
        )}
        <Actions key={`${value.id} actions`} exchange={value} />
        <Note key={value.id} exchange={value} />
        <Timing times={value.times} />
      </header>
      {tabs.length > 0 ? (
        <Tabs exchange={value} tabs={tabs} current={current} />
      ) : (
        <Unseen exchange={value} />
      )}
    </article>
  )
}

interface TabsProps {
  readonly exchange: ExchangeDetail
  readonly tabs: readonly (readonly [Tab, string])[]
  readonly current: Tab
}

function Tabs({ exchange, tabs, current }: TabsProps) {
  return (
    <>
      <div class="tabs" role="tablist">
        {tabs.map(([one, label]) => (
          <button
            type="button"
            key={one}
            role="tab"
            id={`tab-${one}`}
            aria-selected={current === one}
            aria-controls="panel"
            onClick={() => (tab.value = one)}
          >
            {label}
          </button>
        ))}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby={`tab-${current}`} tabIndex={0}>
        <Panel exchange={exchange} tab={current} />
      </div>
    </>
  )
}

/** What has no bytes here. */
function Unseen({ exchange: { method, kind, bytesIn, bytesOut } }: { readonly exchange: ExchangeDetail }) {
  if (method !== '') return <p class="unseen quiet">It never came here: there are no bytes of it.</p>
  return (
    <p class="unseen quiet">
      {bytes(bytesIn)} to the service, {bytes(bytesOut)} back. Bytes of {kind.toUpperCase()} are counted, and
      not kept.
    </p>
  )
}

function tabsOf({ request, answer, frames }: ExchangeDetail): readonly (readonly [Tab, string])[] {
  return [
    ...(request === undefined ? [] : ([['request', 'Request']] as const)),
    ...(answer === undefined ? [] : ([['answer', 'Answer']] as const)),
    ...(frames.total > 0 ? ([['messages', `Messages ${frames.total}`]] as const) : []),
    ...(otherId.value === undefined ? [] : ([['compare', `Compare with ${otherId.value}`]] as const)),
  ]
}

function Panel({ exchange, tab: current }: { readonly exchange: ExchangeDetail; readonly tab: Tab }) {
  if (current === 'messages') return <Messages />
  if (current === 'compare' && otherId.value !== undefined)
    return <Comparison a={otherId.value} b={exchange.id} />
  const side: Side = current === 'answer' ? 'answer' : 'request'
  const message = exchange[side]
  if (message === undefined) return null
  return (
    <>
      {side === 'answer' && exchange.interim.map(head => <pre class="head">{head}</pre>)}
      <Head message={message} />
      <Body id={exchange.id} side={side} facts={message.body} />
      {message.trailers.length > 0 && (
        <>
          <h3>Trailers</h3>
          <Fields fields={message.trailers} />
        </>
      )}
    </>
  )
}

function Head({ message: { head, fields } }: { readonly message: Message }) {
  const hasSecrets = fields.some(({ isSecret }) => isSecret)
  return (
    <>
      <p class="first">
        <code>{head.slice(0, head.indexOf('\r\n'))}</code>
        {hasSecrets && (
          <button
            type="button"
            aria-pressed={isRevealed.value}
            onClick={() => (isRevealed.value = !isRevealed.value)}
          >
            {isRevealed.value ? 'Hide secrets' : 'Show secrets'}
          </button>
        )}
      </p>
      <Fields fields={fields} />
    </>
  )
}

function Fields({ fields }: { readonly fields: Message['fields'] }) {
  return (
    <table class="fields">
      <tbody>
        {fields.map(({ name, value, isSecret }, index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td class={isSecret ? 'secret' : ''}>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Actions({ exchange }: { readonly exchange: ExchangeDetail }) {
  const canReplay = exchange.replayable === true
  const times = useSignal(1)
  const { verified } = exchange
  const isResigned = useSignal(verified?.isValid === true)
  return (
    <div class="actions">
      <button
        type="button"
        class="main"
        disabled={!canReplay}
        title={canReplay ? 'r' : String(exchange.replayable)}
        onClick={() => void replay(undefined, times.value, verified && isResigned.value)}
      >
        Replay
      </button>
      <label>
        ×
        <input
          type="number"
          min={1}
          max={100}
          value={times.value}
          aria-label="How many times"
          onInput={event =>
            (times.value = Math.min(100, Math.max(1, event.currentTarget.valueAsNumber || 1)))
          }
        />
      </label>
      {verified !== undefined && (
        <label>
          <input
            type="checkbox"
            checked={isResigned.value}
            onChange={event => (isResigned.value = event.currentTarget.checked)}
          />{' '}
          fresh signature
        </label>
      )}
      <button type="button" disabled={exchange.request === undefined} title="e" onClick={openEditor}>
        Edit and replay
      </button>
      <button type="button" disabled={exchange.answer === undefined} title="d" onClick={compare}>
        Compare
      </button>
      <select
        aria-label="Copy as"
        disabled={exchange.request === undefined}
        value=""
        onChange={event => {
          void copyAs(event.currentTarget.value)
          event.currentTarget.value = ''
        }}
      >
        <option value="" disabled>
          Copy as…
        </option>
        {FORMATS.map(([format, label]) => (
          <option key={format} value={format}>
            {label}
          </option>
        ))}
      </select>
      <button type="button" aria-pressed={exchange.isPinned} title="p" onClick={() => void togglePin()}>
        {exchange.isPinned ? 'Unpin' : 'Pin'}
      </button>
      <button type="button" title="x" onClick={() => void remove()}>
        Delete
      </button>
    </div>
  )
}

function Note({ exchange }: { readonly exchange: ExchangeDetail }) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    // A note of another page, or of a command.
    if (field.current !== null && document.activeElement !== field.current)
      field.current.value = exchange.note
  }, [exchange.note])
  const save = () => {
    const text = field.current?.value ?? ''
    if (text !== exchange.note) void saveNote(exchange, text)
  }
  return (
    <input
      id="note"
      ref={field}
      maxLength={2_000}
      placeholder="Note"
      aria-label="Note"
      onBlur={save}
      onKeyDown={event => event.key === 'Enter' && event.currentTarget.blur()}
    />
  )
}

function Timing({ times: { requestMs, waitingMs, appMs, transferMs, totalMs } }: { readonly times: Times }) {
  const phases = [
    ['waiting', 'at the server', waitingMs],
    ['asking', 'request', requestMs],
    ['app', 'app', appMs],
    ['transfer', 'transfer', transferMs],
  ] as const
  const sum = phases.reduce((all, [, , ms = 0]) => all + ms, 0)
  if (sum === 0) return <p class="quiet">{duration(totalMs)}</p>
  return (
    <div class="timing">
      <div class="bar" aria-hidden="true">
        {phases.map(
          ([name, , ms = 0]) => ms > 0 && <i key={name} class={name} style={{ flexGrow: ms / sum }} />,
        )}
      </div>
      <p class="quiet">
        {phases.map(
          ([name, label, ms]) =>
            ms !== undefined && (
              <span key={name} class={`phase ${name}`}>
                {label} {duration(ms)}
              </span>
            ),
        )}
        <span class="phase">
          in all {duration(totalMs === undefined ? undefined : totalMs + (waitingMs ?? 0))}
        </span>
      </p>
    </div>
  )
}
