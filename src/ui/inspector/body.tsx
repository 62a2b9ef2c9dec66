// A body as what it is: a tree, a form, parts, a picture, a page without scripts, text, bytes.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Body as BodyFacts } from '../../client/inspect/exchange.ts'
import { bytes } from '../parts/format.ts'
import { Hex } from '../parts/hex.tsx'
import { JsonTree } from '../parts/json-tree.tsx'
import { type Part, partsOf } from '../parts/multipart.ts'
import { saveBody } from './actions.ts'
import { api, type Side } from './api.ts'

type View = 'pretty' | 'text' | 'hex'

const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|x-icon|bmp)$/

/** Text that is shown whole; beyond, the beginning. */
const MAX_SHOWN_CHARS = 200_000

export function Body({
  id,
  side,
  facts,
}: {
  readonly id: string
  readonly side: Side
  readonly facts: BodyFacts
}) {
  const content = useSignal<{ readonly bytes: Uint8Array; readonly fault?: string | undefined } | undefined>(
    undefined,
  )
  const fault = useSignal('')
  const view = useSignal<View>('pretty')
  const { keptBytes, totalBytes, isComplete, type, encoding } = facts
  useEffect(() => {
    content.value = undefined
    fault.value = ''
    if (keptBytes === 0) return undefined
    let isCurrent = true
    api.body(id, side).then(
      found => {
        if (isCurrent) content.value = found
      },
      error => {
        if (isCurrent) fault.value = String(error.message ?? error)
      },
    )
    return () => {
      isCurrent = false
    }
  }, [id, side, keptBytes, content, fault])
  if (totalBytes === 0) return <p class="quiet">No body.</p>
  return (
    <section class="body" aria-label={`Body of the ${side}`}>
      <header>
        <span>
          {bytes(totalBytes)}
          {type !== '' && ` · ${type}`}
          {encoding !== '' && ` · ${encoding}, decoded here`}
          {!isComplete && ' · not complete'}
        </span>
        <span class="views" role="group" aria-label="View">
          {(['pretty', 'text', 'hex'] as const).map(one => (
            <button
              type="button"
              key={one}
              aria-pressed={view.value === one}
              onClick={() => (view.value = one)}
            >
              {one}
            </button>
          ))}
          {keptBytes > 0 && (
            <button type="button" onClick={() => void saveBody(id, side)}>
              save
            </button>
          )}
        </span>
      </header>
      {keptBytes < totalBytes && (
        <p class="note" role="note">
          {bytes(keptBytes)} of {bytes(totalBytes)} are kept
          {side === 'request' ? ': it cannot be sent again as it was.' : '.'}
        </p>
      )}
      {content.value?.fault !== undefined && (
        <p class="note">It could not be decoded: {content.value.fault}</p>
      )}
      {fault.value !== '' && <p class="note">{fault.value}</p>}
      {content.value === undefined ? (
        fault.value === '' && <p class="quiet">Loading…</p>
      ) : (
        <Shown bytes={content.value.bytes} type={type} view={view.value} />
      )}
    </section>
  )
}

function Shown({
  bytes: all,
  type,
  view,
}: {
  readonly bytes: Uint8Array
  readonly type: string
  readonly view: View
}) {
  if (view === 'hex') return <Hex bytes={all} />
  const mime = type.split(';')[0]?.trim().toLowerCase() ?? ''
  if (view === 'pretty' && PICTURES.test(mime)) return <Picture bytes={all} type={mime} />
  if (view === 'pretty' && mime === 'multipart/form-data') {
    const parts = partsOf(all, type)
    if (parts !== undefined) return <Parts parts={parts} />
  }
  const text = textOf(all)
  if (text === undefined) return <Hex bytes={all} />
  if (view === 'pretty') {
    if (mime === 'application/x-www-form-urlencoded') return <Table rows={[...new URLSearchParams(text)]} />
    // Without any right: no scripts, no forms, no other origin; the policy of this page forbids it all besides.
    if (mime === 'text/html')
      return <iframe class="page" sandbox="" srcdoc={text} title="The page, without scripts" />
    if (isJson(text)) return <JsonTree text={text} />
  }
  return (
    <pre class="text" tabIndex={0}>
      {text.slice(0, MAX_SHOWN_CHARS)}
      {text.length > MAX_SHOWN_CHARS && '\n…'}
    </pre>
  )
}

/** `undefined`: these are no characters. */
function textOf(all: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(all)
    // Text has no control characters but the ends of lines and tabs.
    return /^[\P{Cc}\s]*$/u.test(text.slice(0, 1_000)) ? text : undefined
  } catch {
    return undefined
  }
}

function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function Picture({ bytes: all, type }: { readonly bytes: Uint8Array; readonly type: string }) {
  const url = useSignal('')
  useEffect(() => {
    url.value = URL.createObjectURL(new Blob([all.slice()], { type }))
    return () => URL.revokeObjectURL(url.value)
  }, [all, type, url])
  return url.value === '' ? null : <img class="picture" src={url.value} alt={`The body: ${type}`} />
}

function Table({ rows }: { readonly rows: readonly (readonly [string, string])[] }) {
  return (
    <table class="fields">
      <tbody>
        {rows.map(([name, value], index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Parts({ parts }: { readonly parts: readonly Part[] }) {
  return (
    <table class="fields">
      <tbody>
        {parts.map(({ name, file, type, bytes: content }, index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>
              {file !== undefined && `${file} (${bytes(content.length)}${type === '' ? '' : `, ${type}`})`}
              <PartContent bytes={content} type={type} isFile={file !== undefined} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A field is shown; a file that is no picture when it is opened. */
function PartContent({
  bytes: all,
  type,
  isFile,
}: {
  readonly bytes: Uint8Array
  readonly type: string
  readonly isFile: boolean
}) {
  const isOpen = useSignal(false)
  const mime = type.split(';')[0]?.trim().toLowerCase() ?? ''
  if (PICTURES.test(mime)) return <Picture bytes={all} type={mime} />
  if (!isFile) return textOf(all) === undefined ? <Hex bytes={all} /> : <span>{textOf(all)}</span>
  return (
    <details onToggle={event => (isOpen.value = event.currentTarget.open)}>
      <summary>content</summary>
      {isOpen.value && <Shown bytes={all} type={mime === 'multipart/form-data' ? '' : type} view="pretty" />}
    </details>
  )
}
