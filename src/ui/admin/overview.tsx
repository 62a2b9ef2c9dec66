// The overview: traffic, failures, users, problems, and servers.

import type { RecentRow, TunnelRow } from '../../parts/admin/rows.ts'
import type {
  Attention,
  CertificateRow,
  Point,
  Overview as Seen,
  ServerRow,
} from '../../parts/admin/view-rows.ts'
import { bytes, duration } from '../parts/format.ts'
import { at, hashOf, type Place } from './address.ts'
import { Ranges, rangeText, Spark } from './graph.tsx'
import { place, seen } from './state.ts'
import { type Column, Rows, Skeleton } from './table.tsx'
import { bytesText, day, Errors, Latency, latency, perMinute, Rate, rateText, span, Zero } from './words.tsx'

export function Overview() {
  const value = seen('overview')
  return (
    <div class="page">
      <div class="titled">
        <h1>Overview</h1>
        <span class="quiet">
          {(value?.servers.length ?? 1) > 1 ? 'All servers, numbers' : 'Numbers'} of the last 5 minutes
          {value?.series.isKept === false
            ? '; no history, because admin.store is not set'
            : `, lines of the ${rangeText(place.value.range)}`}
        </span>
        <span class="grow" />
        <Ranges />
      </div>
      {value === undefined ? <Skeleton rows={2} /> : <Body value={value} />}
    </div>
  )
}

function Body({ value }: { readonly value: Seen }) {
  const { busiest, users, head, attention, codes, servers, certificates } = value
  return (
    <>
      <Four value={value} />
      <div class="cols2">
        <div class="stack">
          <Card title="Busiest tunnels" link={[`All ${head.counts.tunnels}`, at('tunnels')]}>
            {head.counts.tunnels === 0 ? (
              <p class="none">
                No client has a tunnel yet: <code>localtunnels http 3000 --server …</code>
              </p>
            ) : busiest.length === 0 ? (
              <p class="none">No request in 5 minutes</p>
            ) : (
              <Busiest rows={busiest} />
            )}
          </Card>
          <Card title="Servers" link={['Details', at('servers')]}>
            <Servers rows={servers} />
          </Card>
        </div>
        <div class="stack">
          <Card title="Needs attention">
            {attention.length === 0 ? (
              <p class="none">
                <span class="dot ok" /> Nothing
              </p>
            ) : (
              <ul>
                {attention.map(one => (
                  <Need key={`${one.kind} ${one.subject}`} need={one} />
                ))}
              </ul>
            )}
          </Card>
          {users.length > 0 && (
            <Card title="Busiest tokens" link={[`All ${head.counts.tokens}`, at('tokens')]}>
              <Ranked
                rows={users.map(([name, recent]) => [
                  <TokenLink name={name} />,
                  perMinute(recent.requests, recent),
                  rateText(recent.requests, recent),
                ])}
              />
            </Card>
          )}
          {codes.length > 0 && (
            <Card title="Errors by code, since the start">
              <Ranked
                isBad
                rows={codes.map(([code, count]) => [
                  <code>{code}</code>,
                  count,
                  count.toLocaleString('en-US'),
                ])}
              />
            </Card>
          )}
          {certificates.length > 0 && (
            <Card title="Certificates">
              <Certificates rows={certificates} />
            </Card>
          )}
        </div>
      </div>
    </>
  )
}

/** Returns a change as text: `0.12` is 12 % more. */
function comparison(part: number): string {
  const percent = Math.round(100 * Math.abs(part))
  if (percent === 0) return 'as many as an hour ago'
  const much =
    part >= 1
      ? `${(part + 1).toFixed(1)} times as many as`
      : `${percent} % ${part > 0 ? 'more' : 'fewer'} than`
  return `${much} an hour ago`
}

function Four({ value: { recent, series, inFlight, worst, hourAgo } }: { readonly value: Seen }) {
  const [p50, p95] = [latency(recent, 0.5), latency(recent, 0.95)]
  const range = rangeText(place.value.range)
  const spark = (of: (point: Point) => number, what: string, isBad = false) =>
    series.isKept && <Spark points={series.points} of={of} label={`${what}, ${range}`} isBad={isBad} />
  const part = recent.requests === 0 ? 0 : (100 * recent.errors) / recent.requests
  return (
    <dl class="four">
      <div>
        <dt>Requests</dt>
        <dd class="n">
          {rateText(recent.requests, recent)} <small>per minute</small>
        </dd>
        <dd class="why">
          {inFlight} in flight{hourAgo !== undefined && `, ${comparison(hourAgo)}`}
        </dd>
        <dd>{spark(({ requests }) => requests, 'Requests')}</dd>
      </div>
      <div>
        <dt>Errors</dt>
        <dd class="n">{part === 0 ? '0' : `${part.toFixed(1)} %`}</dd>
        <dd class="why">
          {worst === undefined ? (
            'None in 5 minutes'
          ) : (
            <>
              {worst.recent.errors} of {recent.errors} come from{' '}
              <a href={hashOf({ ...at('tunnels'), open: worst.name })}>{worst.name}</a>
            </>
          )}
        </dd>
        <dd>{spark(({ errors }) => errors, 'Errors', true)}</dd>
      </div>
      <div>
        <dt>Latency, p95</dt>
        <dd class="n">{p95 === undefined ? '—' : duration(p95)}</dd>
        <dd class="why">{p50 === undefined ? 'No request in 5 minutes' : `p50 is ${duration(p50)}`}</dd>
        <dd>{spark(({ p95: high = 0 }) => high, 'Latency, p95')}</dd>
      </div>
      <div>
        <dt>Transfer</dt>
        <dd class="n">
          {bytesText(recent.bytesOut, recent)} <small>out per minute</small>
        </dd>
        <dd class="why">{bytesText(recent.bytesIn, recent)} in</dd>
        <dd>{spark(({ bytesOut }) => bytesOut, 'Bytes out')}</dd>
      </div>
    </dl>
  )
}

interface CardProps {
  readonly title: string
  readonly link?: readonly [text: string, place: Place]
  readonly children: preact.ComponentChildren
}

export function Card({ title, link, children }: CardProps) {
  return (
    <section class="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {link !== undefined && <a href={hashOf(link[1])}>{link[0]}</a>}
      </header>
      {children}
    </section>
  )
}

const Meter = ({ part, isBad = false }: { readonly part: number; readonly isBad?: boolean }) => (
  <span class={isBad ? 'meter bad' : 'meter'}>
    <i style={{ width: `${100 * part}%` }} />
  </span>
)

type Ranks = readonly (readonly [name: preact.JSX.Element, count: number, text: string])[]

/** Each next to its part of the first. */
const Ranked = ({ rows, isBad = false }: { readonly rows: Ranks; readonly isBad?: boolean }) => (
  <ul>
    {rows.map(([name, count, text], at) => (
      <li key={at}>
        <span class="cut">{name}</span>
        <Meter part={count / rows[0]![1]} isBad={isBad} />
        <span class="fig">{text}</span>
      </li>
    ))}
  </ul>
)

function Busiest({ rows }: { readonly rows: readonly TunnelRow[] }) {
  const most = Math.max(1e-9, ...rows.map(({ recent }) => perMinute(recent.requests, recent)))
  const columns: readonly Column<TunnelRow>[] = [
    {
      head: 'Name',
      cell: ({ name }) => (
        <a class="name" href={hashOf({ ...at('tunnels'), open: name })}>
          {name}
        </a>
      ),
    },
    {
      head: 'Req/min',
      class: 'num',
      cell: ({ recent }) => (
        <>
          <span class="mid">
            <Meter part={perMinute(recent.requests, recent) / most} />
          </span>
          <span class="fig">
            <Rate recent={recent} />
          </span>
        </>
      ),
    },
    { head: 'Errors', class: 'num', cell: ({ recent }) => <Errors recent={recent} /> },
    { head: 'p95', class: 'num', cell: ({ recent }) => <Latency recent={recent} part={0.95} /> },
    {
      head: 'Token',
      class: 'mid',
      cell: ({ token }) => (token === undefined ? <Zero text="none" /> : <TokenLink name={token} />),
    },
  ]
  return <Rows columns={columns} rows={rows} keyOf={({ name }) => name} />
}

export const TokenLink = ({ name }: { readonly name: string }) => (
  <a class="ink" href={hashOf({ ...at('tokens'), q: name })}>
    {name}
  </a>
)

/** Makes a column for a server's measurements. */
const measured = (
  head: string,
  name: string,
  cell: (recent: RecentRow) => preact.ComponentChildren,
): Column<ServerRow> => ({
  head,
  class: `num ${name}`,
  cell: ({ recent }) => (recent && cell(recent)) ?? <Zero text="—" />,
})

/** The API's id for a server that is in no cluster. */
const ALONE = 'this server'

const SERVERS: readonly Column<ServerRow>[] = [
  {
    head: 'Server',
    cell: ({ id, isSelf, version }) => (
      <>
        <span class="name" title={version}>
          {id}
        </span>
        {isSelf && id !== ALONE && <span class="quiet"> this one</span>}
      </>
    ),
  },
  {
    head: 'State',
    cell: ({ isReachable }) => (
      <span class="state">
        <span class={isReachable ? 'dot ok' : 'dot bad'} />
        {isReachable ? 'Ready' : 'Away'}
      </span>
    ),
  },
  { head: 'Tunnels', class: 'num', cell: ({ tunnels }) => tunnels },
  measured('Req/min', '', recent => <Rate recent={recent} />),
  measured('Errors', 'mid', recent => <Errors recent={recent} />),
  measured('p95', 'mid', recent => <Latency recent={recent} part={0.95} />),
  measured('Out/min', 'mid lo', recent => bytesText(recent.bytesOut, recent)),
  measured('CPU', 'mid', ({ processors }) =>
    processors === undefined ? undefined : `${Math.round(100 * processors)} %`,
  ),
  measured('Memory', 'mid', ({ memoryBytes }) => memoryBytes && bytes(memoryBytes)),
  {
    head: 'Up',
    class: 'num mid',
    cell: ({ uptimeSeconds }) => uptimeSeconds !== undefined && span(uptimeSeconds),
  },
]

export const Servers = ({ rows }: { readonly rows: readonly ServerRow[] }) => (
  <Rows columns={SERVERS} rows={rows} keyOf={({ id }) => id} />
)

export function Certificates({ rows }: { readonly rows: readonly CertificateRow[] }) {
  return (
    <ul>
      {rows.map(({ name, notAfter, daysLeft }) => (
        <li key={name}>
          <code class="cut">{name}</code>
          <span class={daysLeft < 4 ? 'tag bad' : daysLeft < 14 ? 'tag warn' : 'tag'}>{days(daysLeft)}</span>
          <span class="quiet">ends {day(notAfter)}</span>
        </li>
      ))}
    </ul>
  )
}

const days = (count: number): string => (count === 1 ? '1 day' : `${count} days`)

const NEEDS: Readonly<Record<Attention['kind'], (value: number) => readonly [what: string, figure: string]>> =
  {
    'server-away': () => ['cannot be reached', ''],
    'app-down': () => ['app is down', ''],
    'client-away': () => ['client is away', ''],
    errors: value => ['fails too often', `${value.toFixed(1)} %`],
    slow: value => ['is slow: p95', duration(value)],
    'certificate-ends': value => ['certificate ends', days(value)],
    'token-ends': value => (value < 0 ? ['token has ended', ''] : ['token ends', days(value)]),
    'token-unused': value => ['token not used', days(value)],
  }

/** Where the others of a kind come first. */
const SORTS: Readonly<Partial<Record<Attention['kind'], string>>> = {
  errors: '-errors',
  slow: '-p95',
  'token-ends': 'ends',
  'token-unused': 'used',
}

function Need({ need: { kind, isBad, subject, value, more = 0 } }: { readonly need: Attention }) {
  const [what, figure] = NEEDS[kind](value)
  const to = kind.startsWith('token')
    ? { ...at('tokens'), q: subject }
    : kind === 'server-away' || kind === 'certificate-ends'
      ? at('servers')
      : { ...at('tunnels'), open: subject }
  return (
    <li>
      <span class={isBad ? 'dot bad' : 'dot warn'} />
      <span class="cut">
        <a class="ink" href={hashOf(to)}>
          <b>{subject}</b>
        </a>{' '}
        {what}
      </span>
      {more > 0 && <a href={hashOf({ ...at(to.view), sort: SORTS[kind] ?? 'state' })}>and {more} more</a>}
      <span class={isBad ? 'is-bad' : 'quiet'}>{figure}</span>
    </li>
  )
}
