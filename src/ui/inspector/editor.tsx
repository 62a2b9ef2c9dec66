// Edits a request before it is sent again, with the last response next to it. Typed text is kept until it is sent.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ExchangeDetail } from '../../exchange.ts'
import { formatJson, isJsonFault, parseJson } from '../../parts/inspect/json-text.ts'
import { duration } from '../parts/format.ts'
import { IconButton } from '../parts/icons.tsx'
import { replay } from './actions.ts'
import { api } from './api.ts'
import { Body } from './body.tsx'
import { CodeField } from './code-field.tsx'
import { PROVIDERS } from './head.tsx'
import { connection, go } from './signals.ts'
import { isBinary, textOf } from './text.ts'
import { say } from './toast.ts'

/** The headers that are set when the request is sent, or that belong to its path here. */
const NOT_EDITED =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|te|trailer|expect|forwarded|x-forwarded-.*)$/i

interface Draft {
  method: string
  path: string
  fields: { name: string; value: string }[]
  /** The edited body. `undefined`: the captured bytes. */
  body: string | undefined
}

const keyOf = (id: string) => `draft ${id}`

export function Editor({ exchange }: { readonly exchange: ExchangeDetail }) {
  const { id, verified, status, times, response } = exchange
  const captured = exchange.request?.fields ?? []
  const fresh = (): Draft => ({
    method: exchange.method,
    path: exchange.path,
    fields: captured.filter(({ name }) => !NOT_EDITED.test(name)).map(({ name, value }) => ({ name, value })),
    body: undefined,
  })
  const stored = sessionStorage.getItem(keyOf(id))
  const draft = useSignal<Draft>(stored === null ? fresh() : JSON.parse(stored))
  const original = useSignal<string | undefined>(undefined)
  const isBytes = useSignal(false)
  const isResigned = useSignal(verified?.isValid === true)
  const lineEnd = useRef('\n')
  const type = draft.value.fields.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? ''
  useEffect(() => {
    if (exchange.requestBody.keptBytes === 0) {
      original.value = ''
      return
    }
    void api.body(id, 'request').then(({ bytes }) => {
      const text = textOf(bytes, exchange.request?.body.type ?? '')
      if (isBinary(bytes, type) || text.includes('�')) isBytes.value = true
      if (text.includes('\r\n')) lineEnd.current = '\r\n'
      original.value = text
    })
  }, [id])
  const change = (part: Partial<Draft>) => {
    draft.value = { ...draft.value, ...part }
    sessionStorage.setItem(keyOf(id), JSON.stringify(draft.value))
  }
  const shownBody =
    draft.value.body ?? (original.value === undefined ? '' : (formatJson(original.value) ?? original.value))
  const send = async () => {
    const { method, path, fields, body } = draft.value
    const kept = captured.filter(({ name }) => NOT_EDITED.test(name))
    const isSent = await replay(
      {
        method,
        path,
        // Fields that are not listed are sent unchanged.
        fields: [...kept, ...fields.filter(({ name }) => name.trim() !== '')].map(({ name, value }) => ({
          name: name.trim(),
          value: value.trim(),
        })),
        ...(body !== undefined && { body: body.replace(/\r?\n/g, lineEnd.current) }),
      },
      1,
      verified && isResigned.value,
    )
    if (isSent) sessionStorage.removeItem(keyOf(id))
  }
  const isOff = connection.value !== 'live'
  return (
    <form
      class="editor"
      onSubmit={event => {
        event.preventDefault()
        void send()
      }}
      onKeyDown={event => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        void send()
      }}
    >
      <header class="head">
        <div class="line1">
          <IconButton
            icon="back"
            label="Back, the draft is kept"
            title="Back, the draft is kept (Esc)"
            onClick={() => go({ id })}
          />
          <h2 class="words">Edit and replay</h2>
          <div class="acts">
            <button
              type="button"
              class="btn"
              onClick={() => {
                const before = draft.value
                sessionStorage.removeItem(keyOf(id))
                draft.value = fresh()
                say('Edits dropped', { undo: () => change(before), commit: () => {} })
              }}
            >
              Start again
            </button>
            <button type="submit" class="btn main" aria-disabled={isOff}>
              Send{' '}
              <span class="hint" aria-hidden="true">
                Ctrl ↵
              </span>
            </button>
          </div>
        </div>
        <div class="line2">
          <span>Copy of #{id}</span>
          {verified !== undefined && (
            <label class="switch">
              <input
                type="checkbox"
                checked={isResigned.value}
                onChange={event => (isResigned.value = event.currentTarget.checked)}
              />
              New {PROVIDERS[verified.provider]} signature
            </label>
          )}
          <span class="quiet">The draft is kept until you send it</span>
        </div>
      </header>
      <div class="both">
        <section class="panel" aria-labelledby="edit-title">
          <div class="phead">
            <h3 id="edit-title">Request</h3>
          </div>
          <div class="ed">
            <div class="req">
              <label>
                Method
                <input
                  class="input"
                  required
                  value={draft.value.method}
                  onInput={event => change({ method: event.currentTarget.value })}
                />
              </label>
              <label>
                Path
                <input
                  class="input"
                  required
                  value={draft.value.path}
                  onInput={event => change({ path: event.currentTarget.value })}
                />
              </label>
            </div>
            {isBytes.value ? (
              <p class="none">The body is no text. It is sent byte for byte as it came.</p>
            ) : (
              <BodyField text={shownBody} isJson={/json/i.test(type)} onInput={body => change({ body })} />
            )}
            <FieldsEditor fields={draft.value.fields} onChange={fields => change({ fields })} />
          </div>
        </section>
        <section class="panel" aria-labelledby="response-title">
          {response === undefined ? (
            <p class="none">There was no response.</p>
          ) : (
            <Body
              id={id}
              side="response"
              title="Last response"
              message={response}
              about={`${status} · ${duration(times.totalMs)}`}
            />
          )}
        </section>
      </div>
    </form>
  )
}

function BodyField({
  text,
  isJson,
  onInput,
}: {
  readonly text: string
  readonly isJson: boolean
  readonly onInput: (text: string) => void
}) {
  const found = text.trim() !== '' && isJson ? parseJson(text) : undefined
  const fault = found !== undefined && isJsonFault(found) ? found : undefined
  const before = fault === undefined ? [] : text.slice(0, fault.at).split('\n')
  const said =
    fault === undefined
      ? isJson && text.trim() !== ''
        ? 'Valid JSON'
        : ''
      : `Line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${fault.expected} is expected`
  return (
    <div>
      <div class="lab">
        <label class="grow" for="edit-body">
          Body
        </label>
        {isJson && (
          <button
            type="button"
            class="btn"
            aria-disabled={fault !== undefined}
            onClick={() => {
              const formatted = formatJson(text)
              if (formatted !== undefined) onInput(formatted)
            }}
          >
            Format
          </button>
        )}
      </div>
      <CodeField
        id="edit-body"
        text={text}
        isJson={isJson}
        faultLine={fault === undefined ? undefined : before.length}
        describedBy="edit-check"
        onInput={onInput}
      />
      <p id="edit-check" class={`check ${fault === undefined ? 'quiet' : 'is-bad'}`} role="status">
        {said}
      </p>
    </div>
  )
}

type Fields = Draft['fields']

function FieldsEditor({
  fields,
  onChange,
}: {
  readonly fields: Fields
  readonly onChange: (fields: Fields) => void
}) {
  const put = (index: number, part: Partial<Fields[number]>) =>
    onChange(fields.map((field, at) => (at === index ? { ...field, ...part } : field)))
  return (
    <div>
      <p class="lab">
        <span>Headers</span>{' '}
        <span class="quiet">
          Host, Content-Length and forwarding headers are set when it is sent; •••••• stays the secret
        </span>
      </p>
      <div class="hrows">
        {fields.map(({ name, value }, index) => (
          <>
            <input
              class="input"
              aria-label={`Name of header ${index + 1}`}
              value={name}
              onInput={event => put(index, { name: event.currentTarget.value })}
            />
            <input
              class="input"
              aria-label={`Value of header ${index + 1}`}
              value={value}
              onInput={event => put(index, { value: event.currentTarget.value })}
            />
            <IconButton
              icon="close"
              label={`Remove header ${index + 1}`}
              onClick={() => onChange(fields.filter((_, at) => at !== index))}
            />
          </>
        ))}
      </div>
      <button type="button" class="btn bare" onClick={() => onChange([...fields, { name: '', value: '' }])}>
        Add header
      </button>
    </div>
  )
}
