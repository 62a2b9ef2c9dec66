// The head of an exchange: what it is, its actions, and its result.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Diff, ExchangeDetail, Times as Spent } from '../../exchange.ts'
import { clock, duration, moment } from '../parts/format.ts'
import { Banner, Icon, IconButton } from '../parts/icons.tsx'
import { Menu, type MenuItem } from '../parts/menu.tsx'
import {
  compare,
  copyAs,
  copyLink,
  copyUrl,
  edit,
  FORMATS,
  remove,
  replay,
  saveNote,
  togglePin,
  whyNotReplay,
} from './actions.ts'
import { api } from './api.ts'
import { toneOf } from './list.tsx'
import { go, isRevealed, now } from './signals.ts'

export function Head({ exchange }: { readonly exchange: ExchangeDetail }) {
  const { id, method, kind, path, status, state, event, verified, startedAt, tunnel, service, visitor } =
    exchange
  const hasNote = useSignal(exchange.note !== '')
  return (
    <header class="head">
      <div class="line1">
        <IconButton icon="back" class="back" label="Back to the list" onClick={() => go({ id: undefined })} />
        <h2>
          <span class={`st ${toneOf(exchange) || 'is-ok'}`} title={exchange.reason}>
            {status || (state === 'open' ? '…' : 'fail')}
          </span>
          <span class="m">{method || kind.toUpperCase()}</span>
          <Path text={path || tunnel} />
        </h2>
        <Actions exchange={exchange} writeNote={() => (hasNote.value = true)} />
      </div>
      <div class="line2">
        <Times exchange={exchange} />
        {event !== undefined && <b class="strong cut">{event}</b>}
        {verified !== undefined && (
          <span class={`tag ${verified.isValid ? 'ok' : 'bad'}`} title={verified.provider}>
            signature {verified.isValid ? 'valid' : (verified.reason ?? 'wrong')}
          </span>
        )}
        {exchange.isPinned && <span class="tag info">pinned</span>}
        <span title={moment(startedAt)}>{clock(startedAt)}</span>
        <span class="to cut">
          {tunnel}
          {service !== '' && ` → ${service}`}
        </span>
        {visitor !== undefined && <span class="from cut">from {visitor}</span>}
        <span class="quiet nr">#{id}</span>
      </div>
      <Facts exchange={exchange} />
      {(hasNote.value || exchange.note !== '') && <Note exchange={exchange} />}
    </header>
  )
}

/** The path in one line; a click shows all of it. */
function Path({ text }: { readonly text: string }) {
  const isOpen = useSignal(false)
  return (
    <button
      type="button"
      class={`path ${isOpen.value ? 'is-open' : 'cut'}`}
      title={text}
      aria-expanded={isOpen.value}
      onClick={() => (isOpen.value = !isOpen.value)}
    >
      {text}
    </button>
  )
}

function Actions({
  exchange,
  writeNote,
}: {
  readonly exchange: ExchangeDetail
  readonly writeNote: () => void
}) {
  const { verified, request, isPinned } = exchange
  const why = whyNotReplay(exchange)
  const isResigned = useSignal(verified?.isValid === true)
  const resign = () => (verified === undefined ? undefined : isResigned.value)
  const send = (times: number) => void replay(undefined, times, resign())
  const whyNotEdit = request === undefined || exchange.kind === 'websocket' ? why : undefined
  const more: (MenuItem | undefined)[] = [
    { label: 'Copy link to this request', key: 'l', act: () => void copyLink() },
    { label: 'Copy URL', act: () => void copyUrl(exchange) },
    ...(request === undefined
      ? []
      : FORMATS.map(([format, label]) => ({
          label: `Copy as ${label}`,
          key: format === 'curl' ? 'c' : undefined,
          act: () => void copyAs(format),
        }))),
    undefined,
    { label: isPinned ? 'Unpin' : 'Pin', key: 'p', act: () => void togglePin() },
    { label: 'Note', key: 'n', act: writeNote },
    {
      label: 'Show secrets',
      key: 's',
      isChecked: isRevealed.value,
      act: () => (isRevealed.value = !isRevealed.value),
    },
    undefined,
    { label: 'Delete', key: 'x', isBad: true, act: remove },
  ]
  return (
    <div class="acts">
      <span class="split">
        <button
          type="button"
          class="btn main"
          title={why ?? 'Replay (r)'}
          aria-disabled={why !== undefined}
          aria-describedby={why === undefined ? undefined : 'why'}
          onClick={() => send(1)}
        >
          <Icon name="replay" />
          Replay
        </button>
        <Menu
          label="More ways to replay"
          class="btn main"
          at="left"
          isOff={why !== undefined}
          items={[
            { label: 'Replay', key: 'r', act: () => send(1) },
            { label: 'Replay 10 times', act: () => send(10) },
            ...(verified === undefined
              ? []
              : [
                  undefined,
                  {
                    label: `New ${PROVIDERS[verified.provider]} signature`,
                    isChecked: isResigned.value,
                    act: () => (isResigned.value = !isResigned.value),
                  },
                ]),
          ]}
        >
          <Icon name="down" />
        </Menu>
      </span>
      <button
        type="button"
        class="btn"
        title={whyNotEdit ?? 'Edit and replay (e)'}
        aria-disabled={whyNotEdit !== undefined}
        onClick={edit}
      >
        Edit
      </button>
      <button
        type="button"
        class="btn"
        title="Compare (d)"
        aria-disabled={request === undefined}
        onClick={compare}
      >
        Compare
      </button>
      <Menu label="More actions" at="right" items={more}>
        <Icon name="more" />
      </Menu>
      {why !== undefined && (
        <span id="why" class="sr">
          {why}
        </span>
      )}
    </div>
  )
}

/** Where the time of a request went, in milliseconds. */
export const phasesOf = ({ waitingMs = 0, requestMs = 0, appMs = 0, transferMs = 0 }: Spent) =>
  [
    ['a', 'Server', waitingMs],
    ['b', 'Request', requestMs],
    ['c', 'App', appMs],
    ['d', 'Transfer', transferMs],
  ] as const

function Times({ exchange: { times, state, startedAt, isRefused } }: { readonly exchange: ExchangeDetail }) {
  const { waitingMs = 0, appMs = 0, totalMs } = times
  if (isRefused) return null
  if (totalMs === undefined)
    return (
      <span class="strong is-info">
        {state === 'open' && `open for ${duration(Math.max(0, now.value - Date.parse(startedAt)))}`}
      </span>
    )
  const phases = phasesOf(times)
  return (
    <span class="tbar" title={phases.map(([, name, ms]) => `${name} ${duration(ms)}`).join(' · ')}>
      {duration(totalMs + waitingMs)}
      <span class="bar" aria-hidden="true">
        {phases.map(([key, , ms]) => ms > 0 && <i key={key} class={key} style={{ flexGrow: ms }} />)}
      </span>
      <span class="quiet">app {duration(appMs)}</span>
    </span>
  )
}

export const PROVIDERS = {
  standard: 'Standard Webhooks',
  stripe: 'Stripe',
  github: 'GitHub',
  slack: 'Slack',
  shopify: 'Shopify',
} as const

const VERDICTS = {
  same: 'The response is the same.',
  fixed: 'Fixed: the error is gone.',
  regressed: 'Regressed: this is an error now.',
  different: 'The response is different.',
} as const

function Facts({ exchange }: { readonly exchange: ExchangeDetail }) {
  const { code, explanation, isRefused, isIncomplete, replayOf, state } = exchange
  return (
    <>
      {code !== undefined && (
        <Banner look="bad" icon="bad">
          <b class="strong">{isRefused ? 'Refused by the server, not by your app.' : 'Failed.'}</b>{' '}
          <code>{code}</code> {explanation}
        </Banner>
      )}
      {isIncomplete && (
        <Banner look="warn" icon="warn">
          The capture fell behind: some bytes of this request are missing here.
        </Banner>
      )}
      {replayOf !== undefined && state !== 'open' && (
        <Verdict of={replayOf} id={exchange.id} status={exchange.status} />
      )}
    </>
  )
}

function Verdict({ of, id, status }: { readonly of: string; readonly id: string; readonly status: number }) {
  const diff = useSignal<Diff | undefined>(undefined)
  useEffect(() => {
    api.diff(of, id).then(
      found => (diff.value = found),
      // The original is gone, so nothing is shown.
      () => {},
    )
  }, [of, id, diff])
  const { value } = diff
  if (value === undefined) return null
  const isBad = value.verdict === 'regressed' || status >= 500 || status === 0
  return (
    <Banner
      look={isBad ? 'bad' : value.verdict === 'fixed' ? 'ok' : ''}
      icon={isBad ? 'bad' : 'ok'}
      acts={
        <>
          <button type="button" class="btn bare" onClick={() => go({ id, mode: 'compare', other: of })}>
            Compare with #{of}
          </button>
          <button type="button" class="btn bare" onClick={() => go({ id: of })}>
            Back to #{of}
          </button>
        </>
      }
    >
      <b class="strong">
        {value.a.status || 'failed'} → {status || 'failed'}
      </b>{' '}
      {VERDICTS[value.verdict]}
    </Banner>
  )
}

function Note({ exchange }: { readonly exchange: ExchangeDetail }) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    // The requested exchange does not exist.
    if (exchange.note === '') field.current?.focus()
  }, [])
  useEffect(() => {
    // The note of another page, or of a command.
    if (field.current !== null && document.activeElement !== field.current)
      field.current.value = exchange.note
  }, [exchange.note])
  const save = () => {
    const text = field.current?.value ?? ''
    if (text !== exchange.note) void saveNote(exchange, text)
  }
  return (
    <label class="note-line">
      <Icon name="note" />
      <input
        id="note"
        class="input"
        ref={field}
        maxLength={2_000}
        placeholder="Note"
        aria-label="Note"
        onBlur={save}
        onKeyDown={event => event.key === 'Enter' && event.currentTarget.blur()}
      />
    </label>
  )
}
