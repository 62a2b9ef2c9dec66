// Traffic by minute, hour or day as a graph, and the same as a table.

import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { bytes, moment } from '../parts/format.ts'
import type { Span, TrafficRow } from './api.ts'
import { refresh, span, traffic, tunnel, tunnels } from './state.ts'
import { Table } from './tables.tsx'

const SPANS: readonly Span[] = ['minute', 'hour', 'day']
const HEIGHT = 240

export function Traffic() {
  const { value } = traffic
  const change = (set: () => void): void => {
    set()
    void refresh()
  }
  return (
    <>
      <div class="form">
        <fieldset class="views" aria-label="Rows">
          {SPANS.map(one => (
            <button
              key={one}
              type="button"
              aria-pressed={span.value === one}
              onClick={() => change(() => (span.value = one))}
            >
              by {one}
            </button>
          ))}
        </fieldset>
        <select
          aria-label="Tunnel"
          value={tunnel.value}
          onChange={({ currentTarget }) => change(() => (tunnel.value = currentTarget.value))}
        >
          <option value="">all tunnels</option>
          {tunnels.value?.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      {value === undefined && <p class="empty loading">Loading…</p>}
      {value?.isKept === false && <p class="empty">This server keeps no traffic: admin.store.</p>}
      {value?.isKept && value.traffic.length === 0 && <p class="empty">No traffic yet.</p>}
      {value?.isKept && value.traffic.length > 0 && (
        <>
          <Graph rows={value.traffic} />
          <Numbers rows={value.traffic} />
        </>
      )}
    </>
  )
}

function Graph({ rows }: { readonly rows: readonly TrafficRow[] }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const { current } = box
    if (current === null) return
    const colour = (name: string): string => getComputedStyle(current).getPropertyValue(name)
    const axis = {
      stroke: colour('--quiet'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line') },
    }
    const oldestFirst = rows.toReversed()
    const plot = new uPlot(
      {
        width: current.clientWidth,
        height: HEIGHT,
        cursor: { show: false },
        legend: { show: false },
        axes: [axis, { ...axis, size: 60 }],
        series: [
          {},
          { label: 'requests', stroke: colour('--accent'), width: 2, points: { show: rows.length < 3 } },
          {
            label: 'errors',
            stroke: colour('--bad'),
            width: 2,
            dash: [6, 4],
            points: { show: rows.length < 3 },
          },
        ],
      },
      [
        oldestFirst.map(({ at }) => Date.parse(at) / 1_000),
        oldestFirst.map(({ requests }) => requests),
        oldestFirst.map(({ errors }) => errors),
      ],
      current,
    )
    const fit = new ResizeObserver(() => plot.setSize({ width: current.clientWidth, height: HEIGHT }))
    fit.observe(current)
    return () => {
      fit.disconnect()
      plot.destroy()
    }
  }, [rows])
  return (
    <figure>
      <figcaption class="quiet">
        <span class="key accent">requests</span> <span class="key bad">errors, dashed</span>
      </figcaption>
      <div ref={box} aria-hidden="true" />
    </figure>
  )
}

/** What the graph shows, for who does not see it. */
function Numbers({ rows }: { readonly rows: readonly TrafficRow[] }) {
  return (
    <Table label="Traffic" heads={['From', 'Requests', 'Errors', 'In', 'Out']} count={rows.length} empty="">
      {rows.map(({ at, requests, errors, bytesIn, bytesOut }) => (
        <tr key={at}>
          <th scope="row">{moment(at).slice(0, 16)}</th>
          <td>{requests}</td>
          <td class={errors > 0 ? 'bad' : ''}>{errors}</td>
          <td>{bytes(bytesIn)}</td>
          <td>{bytes(bytesOut)}</td>
        </tr>
      ))}
    </Table>
  )
}
