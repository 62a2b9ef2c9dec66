// WebSocket messages and server-sent events, the oldest at the top. The list follows the newest until the user scrolls up.

import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { ExchangeDetail, Frame } from '../../exchange.ts'
import { formatJson } from '../../parts/inspect/json-text.ts'
import { bytes, duration } from '../parts/format.ts'
import { Hex } from '../parts/hex.tsx'
import { JsonColours } from '../parts/json-colours.tsx'
import { api } from './api.ts'
import { frames, hasNewest, readEarlierFrames, readNewestFrames } from './frames.ts'
import { now } from './signals.ts'

const DIRECTIONS = ['All', 'Sent', 'Received'] as const
const SENDERS = { All: '', Sent: 'visitor', Received: 'app' } as const
/** The pause in milliseconds after a letter. */
const SEARCH_MS = 150
interface Found {
  readonly frames: readonly Frame[]
  readonly matching: number
}
const NONE: Found = { frames: [], matching: 0 }
/** The distance from the end, in pixels, within which the list follows. */
const END_PX = 24

export function Messages({ exchange }: { readonly exchange: ExchangeDetail }) {
  const { total, kept } = exchange.frames
  const search = useSignal('')
  const direction = useSignal<(typeof DIRECTIONS)[number]>('All')
  const chosen = useSignal<number | undefined>(undefined)
  const follows = useSignal(true)
  const box = useRef<HTMLDivElement>(null)
  const drawn = useRef(new WeakMap<Frame, { readonly isChosen: boolean; readonly element: VNode }>())
  const found = useSignal<Found>(NONE)
  const all = frames.value
  const wanted = search.value.toLowerCase()
  const by = SENDERS[direction.value]
  const loaded = all.filter(
    ({ from, text = '', event = '' }) =>
      (by === '' || by === from) && (wanted === '' || `${event} ${text}`.toLowerCase().includes(wanted)),
  )
  const [first] = all
  const dropped = total - kept
  const earlier = first === undefined ? 0 : first.index - dropped
  const isFiltered = wanted !== '' || by !== ''
  const isWhole = earlier === 0 && hasNewest.value
  // The page has some of the messages, the client all stored ones.
  useEffect(() => {
    found.value = NONE
    if (!isFiltered || isWhole) return undefined
    let isCurrent = true
    const search = async () => {
      const next = await api.findFrames(exchange.id, wanted, by).catch(() => NONE)
      if (isCurrent) found.value = next
    }
    const soon = setTimeout(() => void search(), SEARCH_MS)
    return () => {
      isCurrent = false
      clearTimeout(soon)
    }
  }, [exchange.id, wanted, by, isWhole])
  const [from, to] = [first?.index ?? 0, all.at(-1)?.index ?? 0]
  const shown = [
    ...found.value.frames.filter(({ index }) => index < from),
    ...loaded,
    ...found.value.frames.filter(({ index }) => index > to && !hasNewest.value),
  ]
  useEffect(() => {
    if (follows.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight
  }, [all, follows.value, wanted, direction.value])
  const follow = (is: boolean) => {
    follows.value = is
    if (is && !hasNewest.value) void readNewestFrames()
  }
  const isOpen = exchange.state === 'open'
  /** Draws a message. An unchanged one is the same element, which Preact skips, however many come. */
  const draw = (frame: Frame) => {
    const isChosen = chosen.value === frame.index
    const known = drawn.current.get(frame)
    if (known?.isChosen === isChosen) return known.element
    const choose = () => {
      follows.value = false
      chosen.value = chosen.peek() === frame.index ? undefined : frame.index
    }
    const element = <Message key={frame.index} frame={frame} isChosen={isChosen} onClick={choose} />
    drawn.current.set(frame, { isChosen, element })
    return element
  }
  return (
    <section class="msgs" aria-label="Messages">
      <div class="mhead">
        <h3>Messages</h3>
        <span class="quiet">
          {isFiltered ? `${shown.length.toLocaleString('en')} of ` : ''}
          {total.toLocaleString('en')}
        </span>
        <span class="grow" />
        <input
          class="input"
          aria-label="Filter messages"
          placeholder="Filter messages"
          value={search.value}
          onInput={event => (search.value = event.currentTarget.value)}
        />
        {exchange.kind === 'websocket' && (
          <div class="seg" role="group" aria-label="Direction">
            {DIRECTIONS.map(one => (
              <button
                type="button"
                key={one}
                aria-pressed={direction.value === one}
                onClick={() => (direction.value = one)}
              >
                {one}
              </button>
            ))}
          </div>
        )}
      </div>
      <div
        class="mlist"
        ref={box}
        role="group"
        tabIndex={0}
        aria-label="Messages, oldest first"
        onScroll={event => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget
          follows.value = scrollHeight - scrollTop - clientHeight < END_PX
        }}
      >
        {dropped > 0 && <p class="none">The {dropped} oldest are not kept any more.</p>}
        {earlier > 0 && !isFiltered && (
          <button type="button" class="btn" onClick={() => void readEarlierFrames()}>
            Show earlier ones ({earlier})
          </button>
        )}
        {all.length === 0 && <p class="none">{kept > 0 ? 'Loading…' : 'None came yet.'}</p>}
        {found.value.matching > found.value.frames.length && (
          <p class="none">
            The newest {found.value.frames.length} of {found.value.matching} that match.
          </p>
        )}
        {all.length > 0 && shown.length === 0 && <p class="none">No message matches.</p>}
        {shown.map(draw)}
      </div>
      <div class="mfoot">
        <span class={`dot ${isOpen ? 'ok' : ''}`} />
        <span>
          {isOpen
            ? `Open for ${duration(Math.max(0, now.value - Date.parse(exchange.startedAt)))} · ${follows.value ? 'following the newest' : 'not following'}`
            : `Closed after ${duration(exchange.times.totalMs)}`}
        </span>
        <span class="grow" />
        {!hasNewest.value && (
          <button type="button" class="btn bare" onClick={() => void readNewestFrames()}>
            Show the newest
          </button>
        )}
        {isOpen && (
          <button
            type="button"
            class="btn bare"
            aria-pressed={follows.value}
            onClick={() => follow(!follows.value)}
          >
            Follow
          </button>
        )}
      </div>
    </section>
  )
}

function Message({
  frame,
  isChosen,
  onClick,
}: {
  readonly frame: Frame
  readonly isChosen: boolean
  readonly onClick: () => void
}) {
  const isSent = frame.from === 'visitor'
  const facts = [
    frame.event ?? frame.type,
    frame.eventId !== undefined && `id ${frame.eventId}`,
    frame.isCompressed && 'compressed',
    frame.keptBytes < frame.totalBytes && `${bytes(frame.keptBytes)} kept`,
  ].filter(Boolean)
  return (
    <div class={`msg ${isChosen ? 'is-chosen' : ''}`}>
      <span
        class={isSent ? 'up' : 'down'}
        role="img"
        aria-label={isSent ? 'sent by the visitor' : 'sent by the app'}
      >
        {isSent ? '↑' : '↓'}
      </span>
      <span class="t">+{duration(frame.atMs)}</span>
      <button type="button" class="x" aria-expanded={isChosen} title={facts.join(' · ')} onClick={onClick}>
        {frame.event !== undefined && <b class="strong">{frame.event} </b>}
        <Content frame={frame} isChosen={isChosen} />
      </button>
      <span class="s">{bytes(frame.totalBytes)}</span>
    </div>
  )
}

function Content({ frame, isChosen }: { readonly frame: Frame; readonly isChosen: boolean }) {
  const { text = '', base64 = '', closeCode, type } = frame
  if (closeCode !== undefined) return <span class="quiet">{`close ${closeCode} ${text}`.trim()}</span>
  if (text === '' && base64 !== '') {
    const all = Uint8Array.from(atob(base64), character => character.charCodeAt(0))
    return isChosen ? <Hex bytes={all} /> : <span class="quiet">{`${type}, ${bytes(all.length)}`}</span>
  }
  if (text === '') return <span class="quiet">{type}</span>
  const json = /^\s*[[{]/.test(text) ? formatJson(text) : undefined
  if (isChosen) return <pre class="text">{json === undefined ? text : <JsonColours text={json} />}</pre>
  return json === undefined ? <span>{text}</span> : <JsonColours text={text} />
}
