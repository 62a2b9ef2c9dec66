// WebSocket messages and server-sent events, in their order.

import type { Frame } from '../../client/inspect/exchange.ts'
import { bytes, duration } from '../parts/format.ts'
import { frames } from './state.ts'

export function Messages() {
  if (frames.value.length === 0) return <p class="quiet">None is kept.</p>
  return (
    <ol class="messages">
      {frames.value.map(frame => (
        <li key={frame.index} class={frame.from}>
          <span class="quiet">
            {frame.from === 'visitor' ? '→ to the app' : '← from the app'} · {frame.event ?? frame.type} ·{' '}
            {bytes(frame.totalBytes)} · after {duration(frame.atMs)}
            {frame.isCompressed && ' · compressed'}
            {frame.keptBytes < frame.totalBytes && ` · ${bytes(frame.keptBytes)} kept`}
          </span>
          <pre>{contentOf(frame)}</pre>
        </li>
      ))}
    </ol>
  )
}

function contentOf({ text, base64, closeCode }: Frame): string {
  if (closeCode !== undefined) return `${closeCode} ${text ?? ''}`.trim()
  return text ?? base64 ?? ''
}
