// The page in place of rows: each state shows the next step.

import { effect } from '@preact/signals'
import { encode } from 'uqr'
import { Address, IconButton } from '../parts/icons.tsx'
import { copyText } from './actions.ts'
import { connection, filter, isRead, isSearching, rows, session, setFilter } from './signals.ts'

export function Empty() {
  if (connection.value === 'refused')
    return (
      <State title="This page has no token">
        <p>
          Open the address that the terminal shows: its token stands behind the #. This tab keeps it then.
        </p>
      </State>
    )
  if (filter.value !== '' && isRead.value && !isSearching.value)
    return (
      <State title="No request matches">
        <p>
          {session.value?.used.exchanges ?? 0} are kept, and none fits <code>{filter.value}</code>.
        </p>
        <button type="button" class="btn" onClick={() => setFilter('')}>
          Clear filter
        </button>
      </State>
    )
  if (!isRead.value && connection.value === 'unproven')
    return (
      <State title="This is not your client">
        <p>Open the address that the terminal shows.</p>
      </State>
    )
  if (!isRead.value && connection.value === 'lost')
    return (
      <State title="The client is not running">
        <p>This page goes on by itself when it is back.</p>
      </State>
    )
  return isRead.value ? <First /> : <Skeleton />
}

export function State({
  title,
  children,
}: {
  readonly title: string
  readonly children: preact.ComponentChildren
}) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

const WIDTHS = [44, 71, 52, 80, 61, 39, 75, 48, 66, 57, 42, 78]

function Skeleton() {
  return (
    <div class="skeleton" role="status" aria-busy="true">
      <span class="sr">Loading requests</span>
      {WIDTHS.map(width => (
        <div key={width} class="bone cols" aria-hidden="true">
          <span class="shimmer" />
          <span class="shimmer" />
          <span class="shimmer" style={{ width: `${width}%` }} />
        </div>
      ))}
    </div>
  )
}

/** Whether there were requests that are gone now. */
let hadRequests = false
effect(() => {
  hadRequests ||= rows.value.length > 0
})

function First() {
  const tunnels = session.value?.tunnels ?? []
  const shared = tunnels.find(({ url }) => url.startsWith('https://'))
  return (
    <div class="first">
      <h2>
        <span class="wait" aria-hidden="true" />
        {hadRequests ? 'Waiting for the next request' : 'Waiting for the first request'}
      </h2>
      <p>Open an address, or run a command. It appears here at once.</p>
      <div class="try">
        <ul>
          {tunnels.map(({ name, url, service }) => (
            <li key={url}>
              <div>
                <b class="strong">{name}</b>
                <Address url={url} class="cut" />
                <span class="quiet grow cut">→ {service}</span>
              </div>
              {url.startsWith('http') && <Command text={`curl -i ${url}/`} name={name} />}
            </li>
          ))}
        </ul>
        {shared !== undefined && <Code url={shared.url} name={shared.name} />}
      </div>
    </div>
  )
}

function Command({ text, name }: { readonly text: string; readonly name: string }) {
  return (
    <div>
      <code class="cut">{text}</code>
      <IconButton icon="copy" label={`Copy the command for ${name}`} onClick={() => void copyText(text)} />
    </div>
  )
}

function Code({ url, name }: { readonly url: string; readonly name: string }) {
  const { data, size } = encode(url, { border: 0 })
  const path = data
    .flatMap((line, y) => line.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return (
    <div class="qrbox">
      <svg
        class="qr"
        viewBox={`0 0 ${size} ${size}`}
        role="img"
        aria-label={`QR code of ${url}`}
        shape-rendering="crispEdges"
      >
        <path fill="#000" d={path} />
      </svg>
      Open {name} on a phone
    </div>
  )
}
