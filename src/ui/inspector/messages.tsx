// WebSocket messages and server-sent events, in their order.

import type { Frame } from '../../client/inspect/exchange.ts'
import { bytes, duration } from '../parts/format.ts'
import { Hex } from '../parts/hex.tsx'
import { detail, frames, showEarlierFrames, showNewestFrames } from './state.ts'

export function Messages() {
  const { total = 0, kept = 0 } = detail.value?.frames ?? {}
  const [first] = frames.value
  const last = frames.value.at(-1)
  if (first === undefined || last === undefined)
    return <p class="quiet">{kept > 0 ? 'Loading…' : 'None is kept.'}</p>
  const dropped = total - kept
  const [before, behind] = [first.index - dropped, total - last.index - 1]
  return (
    <>
      {dropped > 0 && <p class="note">The {dropped} oldest are not kept any more.</p>}
      {before > 0 && (
        <button type="button" onClick={() => void showEarlierFrames()}>
          Show earlier ones ({before})
        </button>
      )}
      <ol class="messages" start={first.index + 1}>
        {frames.value.map(frame => (
          <Message key={frame.index} frame={frame} />
        ))}
      </ol>
      {behind > 0 && (
        <button type="button" onClick={() => void showNewestFrames()}>
          Show the newest ({behind} more)
        </button>
      )}
    </>
  )
}

function Message({ frame }: { readonly frame: Frame }) {
  return (
    <li class={frame.from}>
      <span class="quiet">
        {frame.from === 'visitor' ? '→ to the app' : '← from the app'} · {frame.event ?? frame.type} ·{' '}
        {bytes(frame.totalBytes)} · after {duration(frame.atMs)}
        {frame.eventId !== undefined && ` · id ${frame.eventId}`}
        {frame.isCompressed && ' · compressed'}
        {frame.keptBytes < frame.totalBytes && ` · ${bytes(frame.keptBytes)} kept`}
      </span>
      <Content frame={frame} />
    </li>
  )
}

function Content({ frame: { text, base64, closeCode } }: { readonly frame: Frame }) {
  if (closeCode !== undefined) return <pre>{`${closeCode} ${text ?? ''}`.trim()}</pre>
  if (base64 === undefined || base64 === '') return <pre>{text}</pre>
  return <Hex bytes={Uint8Array.from(atob(base64), character => character.charCodeAt(0))} />
}
