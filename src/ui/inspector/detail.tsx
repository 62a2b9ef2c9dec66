// One exchange in full: the selected one, or why it is missing. Request and response are next to each other if there is room.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ExchangeDetail, Times } from '../../exchange.ts'
import { bytes, duration } from '../parts/format.ts'
import { Body } from './body.tsx'
import { Comparison } from './comparison.tsx'
import { Editor } from './editor.tsx'
import { Fold, Headers, Query } from './fields.tsx'
import { Head, phasesOf } from './head.tsx'
import { Messages } from './messages.tsx'
import { detailFault, go, mode, otherId, selectedId, shown } from './signals.ts'
import { reconnect } from './state.ts'
import { State } from './states.tsx'

export function Detail() {
  const id = selectedId.value
  if (id === undefined) return null
  const { value } = shown
  if (detailFault.value !== undefined || value === undefined)
    return (
      <article class="detail" aria-label={`Request #${id}`}>
        {detailFault.value === undefined ? <Loading key={id} id={id} /> : <Fault id={id} />}
      </article>
    )
  return (
    <article class="detail" aria-label={`${value.method} ${value.path}`} data-shows={id}>
      {mode.value === 'edit' && value.request !== undefined ? (
        <Editor key={id} exchange={value} />
      ) : mode.value === 'compare' && otherId.value !== undefined ? (
        <Comparison a={otherId.value} b={id} />
      ) : (
        <>
          <Head key={id} exchange={value} />
          <Content key={`${id} content`} exchange={value} />
        </>
      )}
    </article>
  )
}

/** The time in milliseconds before a placeholder is shown. Most exchanges arrive earlier. */
const SKELETON_MS = 150

function Loading({ id }: { readonly id: string }) {
  const isLate = useSignal(false)
  useEffect(() => {
    const timer = setTimeout(() => (isLate.value = true), SKELETON_MS)
    return () => clearTimeout(timer)
  }, [isLate])
  return (
    <div role="status" aria-busy="true" class="loading">
      <span class="sr">Loading request #{id}</span>
      {isLate.value &&
        [40, 70, 55, 62].map(width => <span key={width} class="shimmer" style={{ width: `${width}%` }} />)}
    </div>
  )
}

function Fault({ id }: { readonly id: string }) {
  const back = (
    <button type="button" class="btn" onClick={() => go({ id: undefined })}>
      Back to the list
    </button>
  )
  if (detailFault.value === 'gone')
    return (
      <State title={`Request #${id} is gone`}>
        <p>It was deleted, or newer ones took its place. Pin a request to keep it.</p>
        {back}
      </State>
    )
  return (
    <State title={`Request #${id} cannot be read`}>
      <p role="alert">{detailFault.value}</p>
      <div class="acts">
        <button type="button" class="btn main" onClick={reconnect}>
          Try now
        </button>
        {back}
      </div>
    </State>
  )
}

function Content({ exchange }: { readonly exchange: ExchangeDetail }) {
  const { id, request, response, path, kind, frames, interim } = exchange
  if (request === undefined) return <Unseen exchange={exchange} />
  if (frames.total > 0 || kind === 'websocket')
    return (
      <>
        <Messages exchange={exchange} />
        <Query path={path} isOpen={false} />
        <Headers name="Request headers" fields={request.fields} />
        {request.body.totalBytes > 0 && <Body id={id} side="request" title="Request" message={request} />}
        {response !== undefined && <Headers name="Response headers" fields={response.fields} />}
      </>
    )
  return (
    <div class="both">
      <section class="panel" id="request" aria-labelledby="request-title">
        <Body id={id} side="request" title="Request" message={request} />
        <Query path={path} isOpen={request.body.totalBytes === 0} />
        <Headers name="Headers" fields={request.fields} />
        <Headers name="Trailers" fields={request.trailers} />
      </section>
      <section class="panel" id="response" aria-labelledby="response-title">
        {response === undefined ? (
          <>
            <div class="phead">
              <h3 id="response-title">Response</h3>
            </div>
            <p class="none">{exchange.state === 'open' ? 'It has not come yet.' : 'None came.'}</p>
          </>
        ) : (
          <>
            <Body id={id} side="response" title="Response" message={response} about={`${exchange.status}`} />
            <Headers name="Headers" fields={response.fields} />
            <Headers name="Trailers" fields={response.trailers} />
          </>
        )}
        {interim.length > 0 && (
          <Fold name="Early heads" count={interim.length} glance={interim[0]?.split('\r\n')[0] ?? ''}>
            <pre class="text">{interim.join('')}</pre>
          </Fold>
        )}
        <Timing times={exchange.times} />
      </section>
    </div>
  )
}

/** Shows exchanges without captured bytes. */
function Unseen({
  exchange: { method, kind, status, bytesIn, bytesOut },
}: {
  readonly exchange: ExchangeDetail
}) {
  if (method !== '')
    return (
      <State title="It did not reach this machine">
        <p>
          The server refused it first, so there are no headers and no body to show. It is listed so that you
          can see why the visitor got {status}.
        </p>
      </State>
    )
  return (
    <State title={`A ${kind.toUpperCase()} connection`}>
      <p>
        {bytes(bytesIn)} to the service, {bytes(bytesOut)} back. Its bytes are counted, and not kept.
      </p>
    </State>
  )
}

function Timing({ times }: { readonly times: Times }) {
  const { waitingMs = 0, appMs = 0, totalMs } = times
  if (totalMs === undefined) return null
  const phases = phasesOf(times)
  const sum = Math.max(
    0.01,
    phases.reduce((all, [, , ms]) => all + ms, 0),
  )
  let from = 0
  return (
    <Fold name="Timing" count={duration(totalMs + waitingMs)} glance={`app ${duration(appMs)}`}>
      <div class="tw-rows">
        {phases.map(([key, label, ms]) => {
          const left = (from / sum) * 100
          from += ms
          return (
            <>
              <span class="quiet">{label}</span>
              <span class={`track ${key}`}>
                <i style={{ left: `${Math.min(99, left)}%`, width: `${(ms / sum) * 100}%` }} />
              </span>
              <span class="num">{duration(ms)}</span>
            </>
          )
        })}
      </div>
    </Fold>
  )
}
