// Shows a body in its own form: a tree, a form, parts, a picture, a page without scripts, text, bytes.

import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Message } from '../../exchange.ts'
import { bytes } from '../parts/format.ts'
import { Hex } from '../parts/hex.tsx'
import { Icon, IconButton } from '../parts/icons.tsx'
import { JsonColours } from '../parts/json-colours.tsx'
import { JsonTree, rootOf } from '../parts/json-tree.tsx'
import { partsOf } from '../parts/multipart.ts'
import { copyText, saveBody } from './actions.ts'
import { api, type Side } from './api.ts'
import { Fields } from './fields.tsx'
import { Parts, PICTURES, Picture } from './parts.tsx'
import { isRevealed } from './signals.ts'
import { isBinary, mimeOf, textOf } from './text.ts'

type View = 'Tree' | 'Form' | 'Preview' | 'Text' | 'Hex'

/** The number of characters shown at once. A button shows more. */
const SHOWN_CHARS = 200_000

interface BodyProps {
  readonly id: string
  readonly side: Side
  readonly title: string
  readonly message: Message
  /** Before the size: a status. */
  readonly about?: string
}

export function Body({ id, side, title, message: { body }, about = '' }: BodyProps) {
  const { keptBytes, totalBytes, isComplete, type, encoding } = body
  const content = useSignal<{ readonly bytes: Uint8Array; readonly fault?: string | undefined } | undefined>(
    undefined,
  )
  const fault = useSignal('')
  const chosen = useSignal<View | undefined>(undefined)
  const search = useSignal<string | undefined>(undefined)
  const isRevealedNow = isRevealed.value
  useEffect(() => {
    fault.value = ''
    if (keptBytes === 0) return undefined
    let isCurrent = true
    api.body(id, side, isRevealedNow).then(
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
  }, [id, side, keptBytes, isRevealedNow])
  const isCut = keptBytes < totalBytes || !isComplete
  const text = useComputed(() => textOf(content.value?.bytes ?? new Uint8Array(0), type))
  const root = useComputed(() => rootOf(text.value, isCut))
  const all = content.value?.bytes
  const views = viewsOf(all, type, root.value !== undefined)
  const view = chosen.value !== undefined && views.includes(chosen.value) ? chosen.value : views[0]
  const facts = [
    about,
    totalBytes === 0 ? 'no body' : bytes(totalBytes),
    totalBytes === 0 ? '' : shortType(type),
    encoding === '' ? '' : `${encoding}, decoded`,
    isComplete || totalBytes === 0 ? '' : 'not complete',
  ].filter(Boolean)
  return (
    <>
      <div class="phead">
        <h3 id={`${side}-title`}>{title}</h3>
        <span class="quiet cut" title={facts.join(' · ')}>
          {facts.join(' · ')}
        </span>
        {all !== undefined && (
          <>
            {view === 'Tree' && (
              <IconButton
                icon="search"
                label={`Search the ${side === 'request' ? 'request' : 'response'} body`}
                title="Search"
                aria-pressed={search.value !== undefined}
                onClick={() => (search.value = search.value === undefined ? '' : undefined)}
              />
            )}
            <div class="seg" role="group" aria-label={`View of the ${title.toLowerCase()} body`}>
              {views.map(one => (
                <button
                  type="button"
                  key={one}
                  aria-pressed={view === one}
                  onClick={() => (chosen.value = one)}
                >
                  {one}
                </button>
              ))}
            </div>
            <IconButton
              icon="copy"
              label={`Copy ${title.toLowerCase()} body`}
              title="Copy body"
              onClick={() => void copyText(text.value, 'Body copied')}
            />
            <IconButton
              icon="save"
              label={`Save ${title.toLowerCase()} body`}
              title="Save body"
              onClick={() => void saveBody(id, side)}
            />
          </>
        )}
      </div>
      {keptBytes < totalBytes && (
        <p class="warn-line" role="note">
          <Icon name="warn" />
          <span>
            {bytes(keptBytes)} of {bytes(totalBytes)} are kept. To keep more: <code>max-body</code> of{' '}
            <code>[inspect]</code>
          </span>
        </p>
      )}
      {[content.value?.fault && `It could not be decoded: ${content.value.fault}`, fault.value]
        .filter(Boolean)
        .map(one => (
          <p key={one} class="warn-line">
            <Icon name="warn" />
            {one}
          </p>
        ))}
      {search.value !== undefined && view === 'Tree' && (
        <div class="tree-search">
          <input
            class="input"
            aria-label="Text in the body"
            placeholder="A name or a value"
            value={search.value}
            ref={field => field?.focus()}
            onInput={event => (search.value = event.currentTarget.value)}
          />
        </div>
      )}
      {all !== undefined && view !== undefined && (
        <div class="body">
          <Shown
            view={view}
            bytes={all}
            text={text.value}
            type={type}
            root={root.value}
            search={search.value ?? ''}
            label={`${title} body`}
          />
        </div>
      )}
      {all === undefined && keptBytes > 0 && fault.value === '' && (
        <p class="none" role="status">
          Loading…
        </p>
      )}
    </>
  )
}

function viewsOf(all: Uint8Array | undefined, type: string, isTree: boolean): readonly View[] {
  if (all === undefined) return []
  const mime = mimeOf(type)
  if (isTree) return ['Tree', 'Text', 'Hex']
  if (PICTURES.test(mime) || mime === 'text/html') return ['Preview', 'Text', 'Hex']
  if (mime === 'application/x-www-form-urlencoded' || mime === 'multipart/form-data')
    return ['Form', 'Text', 'Hex']
  return isBinary(all, type) ? ['Hex', 'Text'] : ['Text', 'Hex']
}

const SHORT: Readonly<Record<string, string>> = {
  'application/json': 'JSON',
  'text/html': 'HTML',
  'text/css': 'CSS',
  'text/javascript': 'JavaScript',
  'text/plain': 'text',
  'text/event-stream': 'events',
  'image/png': 'PNG',
  'image/jpeg': 'JPEG',
  'application/x-www-form-urlencoded': 'form',
  'multipart/form-data': 'form',
}
const shortType = (type: string) => SHORT[mimeOf(type)] ?? mimeOf(type)

interface ShownProps {
  readonly view: View
  readonly bytes: Uint8Array
  readonly text: string
  readonly type: string
  readonly root: ReturnType<typeof rootOf>
  readonly search: string
  readonly label: string
}

function Shown({ view, bytes: all, text, type, root, search, label }: ShownProps) {
  const mime = mimeOf(type)
  if (view === 'Hex') return <Hex bytes={all} />
  if (view === 'Tree' && root !== undefined)
    return (
      <JsonTree root={root} label={label} search={search} onCopy={(one, what) => void copyText(one, what)} />
    )
  if (view === 'Preview' && PICTURES.test(mime)) return <Picture bytes={all} type={mime} />
  // Without any rights: no scripts, forms or other origins. The policy of this page also forbids them.
  if (view === 'Preview')
    return <iframe class="page" sandbox="" srcdoc={text} title="The page, without scripts" />
  if (view === 'Form' && mime === 'multipart/form-data') return <Parts parts={partsOf(all, type) ?? []} />
  if (view === 'Form') return <Fields fields={[...new URLSearchParams(text)]} />
  return <Text text={text} isJson={root !== undefined} label={label} />
}

function Text({
  text,
  isJson,
  label,
}: {
  readonly text: string
  readonly isJson: boolean
  readonly label: string
}) {
  const shown = useSignal(SHOWN_CHARS)
  const some = text.slice(0, shown.value)
  return (
    <>
      <pre class="text" role="region" tabIndex={0} aria-label={label}>
        {isJson ? <JsonColours text={some} /> : some}
      </pre>
      {text.length > shown.value && (
        <button type="button" class="btn" onClick={() => (shown.value += SHOWN_CHARS)}>
          Show the next {Math.min(SHOWN_CHARS, text.length - shown.value).toLocaleString('en')} characters of{' '}
          {(text.length - shown.value).toLocaleString('en')}
        </button>
      )}
    </>
  )
}
