// The tables of the page.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { bytes, duration, moment } from '../parts/format.ts'
import { api, type BanRow, type ClientRow, type TunnelRow } from './api.ts'
import { act, bans, certificates, clients, filter, log, nodes, question, tunnels } from './state.ts'

interface TableProps {
  readonly label: string
  readonly heads: readonly string[]
  readonly count: number | undefined
  readonly empty: string
  readonly children: ComponentChildren
}

export function Table({ label, heads, count, empty, children }: TableProps) {
  const table = useRef<HTMLTableElement>(null)
  // On a phone a row is a card, with the head of its column before each value.
  useEffect(() => {
    for (const { cells } of table.current?.rows ?? [])
      for (const [at, cell] of [...cells].entries()) cell.dataset.head = heads[at] ?? ''
  })
  if (count === undefined) return <p class="empty loading">Loading…</p>
  if (count === 0) return <p class="empty">{empty}</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="grid" ref={table}>
        <thead>
          <tr>
            {heads.map(head =>
              head === '' ? (
                <td key={head} />
              ) : (
                <th key={head} scope="col">
                  {head}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

const fits = (...texts: readonly string[]): boolean =>
  texts.some(text => text.toLowerCase().includes(filter.value.toLowerCase()))

export const ask = (text: string, yes: () => Promise<unknown>): void => {
  question.value = { text, yes }
}

const STATES: Readonly<Record<TunnelRow['state'], readonly [look: string, text: string]>> = {
  up: ['good', 'up'],
  reconnecting: ['warn', 'client away'],
  unhealthy: ['bad', 'app unwell'],
}

export function Tunnels() {
  const rows = tunnels.value?.filter(({ name, kind }) => fits(name, kind))
  return (
    <Table
      label="Tunnels"
      heads={['Name', 'State', 'Last proven', 'Requests', 'Errors', 'In', 'Out', '']}
      count={rows?.length}
      empty={filter.value === '' ? 'No client has a tunnel.' : 'No tunnel has this in its name.'}
    >
      {rows?.map(row => (
        <tr key={row.name}>
          <th scope="row">
            {row.url.startsWith('http') ? (
              <a href={row.url} target="_blank" rel="noreferrer noopener">
                {row.name}
              </a>
            ) : (
              row.name
            )}{' '}
            <span class="quiet">
              {row.kind}
              {row.isGuarded && ', guarded'}
            </span>
          </th>
          <td class={STATES[row.state][0]}>{STATES[row.state][1]}</td>
          <td>
            <Proven row={row} />
          </td>
          <td>{row.requests}</td>
          <td class={row.errors > 0 ? 'bad' : ''}>{row.errors}</td>
          <td>{bytes(row.bytesIn)}</td>
          <td>{bytes(row.bytesOut)}</td>
          <td class="doing">
            {row.kind === 'http' && (
              <button type="button" onClick={() => void act(api.probe(row.name), `${row.name} was probed.`)}>
                Probe
              </button>
            )}
            <button
              type="button"
              onClick={() =>
                ask(`Close ${row.name}? Its client may ask for it again.`, () =>
                  act(api.closeTunnel(row.name), `${row.name} is closed.`),
                )
              }
            >
              Close
            </button>
            <button
              type="button"
              onClick={() =>
                ask(
                  `Block ${row.name}? It is closed, and no client gets the name until the ban is lifted.`,
                  () =>
                    act(api.ban({ kind: 'tunnel', value: row.name, reason: '' }), `${row.name} is blocked.`),
                )
              }
            >
              Block
            </button>
          </td>
        </tr>
      ))}
    </Table>
  )
}

function Proven({ row: { lastProvenAt, lastProbe } }: { readonly row: TunnelRow }) {
  const failed = lastProbe?.code
  return (
    <>
      {lastProvenAt === undefined ? <span class="quiet">not yet</span> : moment(lastProvenAt)}
      {failed !== undefined && <span class="bad"> {failed}</span>}
      {failed === undefined && lastProbe !== undefined && (
        <span class="quiet"> {duration(lastProbe.durationMs)}</span>
      )}
    </>
  )
}

export function Clients() {
  const rows = clients.value?.filter(({ address, agent = '', tunnels: names }) =>
    fits(address, agent, ...names),
  )
  return (
    <Table
      label="Clients"
      heads={['Client', 'Version', 'Address', 'Connected', 'Round trip', 'Tunnels', '']}
      count={rows?.length}
      empty={filter.value === '' ? 'No client is connected.' : 'No client has this.'}
    >
      {rows?.map((row: ClientRow) => (
        <tr key={row.number}>
          <th scope="row">{row.number}</th>
          <td>{row.agent ?? `${row.wire} wire`}</td>
          <td>{row.address}</td>
          <td>{moment(row.connectedAt)}</td>
          <td>{row.roundTripMs === undefined ? '' : duration(row.roundTripMs)}</td>
          <td>{row.tunnels.join(', ')}</td>
          <td class="doing">
            <button
              type="button"
              onClick={() =>
                ask(`Disconnect client ${row.number}?`, () =>
                  act(api.closeClient(row.number), `Client ${row.number} is disconnected.`),
                )
              }
            >
              Disconnect
            </button>
            <button
              type="button"
              onClick={() =>
                ask(`Block ${row.address}? Neither clients nor visitors from there get in.`, () =>
                  act(
                    api.ban({ kind: 'address', value: row.address, reason: '' }),
                    `${row.address} is blocked.`,
                  ),
                )
              }
            >
              Block address
            </button>
          </td>
        </tr>
      ))}
    </Table>
  )
}

/** For how long, in seconds; `''`: until an operator ends it. */
export const TIMES = [
  ['', 'without end'],
  ['3600', 'for an hour'],
  ['86400', 'for a day'],
  ['604800', 'for a week'],
  ['7776000', 'for 90 days'],
] as const

/** What was typed into a field of a form. */
export function typed(form: HTMLFormElement, name: string): string {
  const given = new FormData(form).get(name)
  return typeof given === 'string' ? given : ''
}

export function Bans() {
  const add = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault()
    const form = event.currentTarget
    const text = (name: string): string => typed(form, name)
    const forSeconds = Number(text('seconds'))
    const ban = {
      kind: text('kind'),
      value: text('value'),
      reason: text('reason'),
      ...(forSeconds > 0 && { forSeconds }),
    }
    void act(
      api.ban(ban).then(() => form.reset()),
      `${ban.value} is blocked.`,
    )
  }
  return (
    <>
      <form class="form" onSubmit={add}>
        <select name="kind" aria-label="What is blocked">
          <option value="address">address or network</option>
          <option value="tunnel">name of a tunnel</option>
        </select>
        <input
          name="value"
          required
          maxLength={255}
          placeholder="192.0.2.0/24"
          aria-label="Address, network or name"
        />
        <input name="reason" maxLength={1_000} placeholder="why" aria-label="Why" />
        <select name="seconds" aria-label="For how long">
          {TIMES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <button type="submit" class="main">
          Block
        </button>
      </form>
      <Table
        label="Bans"
        heads={['What', 'Why', 'Since', 'Until', '']}
        count={bans.value?.length}
        empty="Nothing is blocked."
      >
        {bans.value?.map((ban: BanRow) => (
          <tr key={ban.id}>
            <th scope="row">
              {ban.value} <span class="quiet">{ban.kind}</span>
            </th>
            <td>{ban.reason}</td>
            <td>{moment(ban.since)}</td>
            <td>{ban.until === undefined ? '' : moment(ban.until)}</td>
            <td class="doing">
              <button
                type="button"
                onClick={() => void act(api.removeBan(ban.id), `${ban.value} is not blocked any more.`)}
              >
                Lift
              </button>
            </td>
          </tr>
        ))}
      </Table>
    </>
  )
}

export function Log() {
  const { value } = log
  const rows = value?.entries.filter(({ action, actor, subject, detail = '' }) =>
    fits(action, actor, subject, detail),
  )
  return (
    <Table
      label="Audit log"
      heads={['When', 'What', 'Who', 'To what', '']}
      count={rows?.length}
      empty={value?.isKept === false ? 'This server keeps no audit log: admin.store.' : 'Nothing yet.'}
    >
      {rows?.map((row, at) => (
        <tr key={`${row.at} ${at}`}>
          <th scope="row">{moment(row.at)}</th>
          <td>{row.action}</td>
          <td>{row.actor}</td>
          <td>{row.subject}</td>
          <td>{row.detail}</td>
        </tr>
      ))}
    </Table>
  )
}

export function Server() {
  const { value } = nodes
  return (
    <>
      <h2>Certificates</h2>
      <Table
        label="Certificates"
        heads={['Name', 'Ends', 'Days left']}
        count={certificates.value.length}
        empty="None: the server speaks plain HTTP, or a proxy in front has them."
      >
        {certificates.value.map(({ name, notAfter, daysLeft }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{moment(notAfter)}</td>
            <td class={daysLeft < 14 ? 'bad' : ''}>{daysLeft}</td>
          </tr>
        ))}
      </Table>
      <h2>Servers</h2>
      <Table
        label="Servers of the cluster"
        heads={[
          'Server',
          'Address',
          'State',
          'Requests sent there',
          'Clients',
          'Tunnels',
          'Requests',
          'Under way',
          'Version',
        ]}
        count={value?.nodes.length}
        empty="This server is alone."
      >
        {value?.nodes.map(({ id, url, isSelf, isReachable, inFlight, ...report }) => (
          <tr key={id}>
            <th scope="row">
              {id} {isSelf && <span class="quiet">this one</span>}
            </th>
            <td>{url}</td>
            <td class={isReachable ? 'good' : 'bad'}>{isReachable ? 'reachable' : 'unreachable'}</td>
            <td>{isSelf ? '' : inFlight}</td>
            <td>{report.clients}</td>
            <td>{report.tunnels}</td>
            <td>{report.requests}</td>
            <td>{report.pending}</td>
            <td>{report.version}</td>
          </tr>
        ))}
      </Table>
    </>
  )
}
