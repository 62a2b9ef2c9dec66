// Tunnels, each with a sheet and its actions.

import { useEffect, useRef } from 'preact/hooks'
import type { ClientRow, TunnelRow } from '../../parts/admin/rows.ts'
import type { Tunnels as Seen } from '../../parts/admin/view-rows.ts'
import { duration } from '../parts/format.ts'
import { Address, Icon, IconButton } from '../parts/icons.tsx'
import { Menu, type MenuItem } from '../parts/menu.tsx'
import { hashOf } from './address.ts'
import { api } from './api.ts'
import { Graphs, Ranges } from './graph.tsx'
import { TokenLink } from './overview.tsx'
import { act, change, confirmed, place, say, seen } from './state.ts'
import { Bar, type Column, RowMenu, Table } from './table.tsx'
import { Ago, Errors, Latency, latency, Moved, Rate, SLOW_MS, State, Zero } from './words.tsx'

const CHOICES = [
  ['', 'all', 'All'],
  ['errors', 'errors', 'With errors'],
  ['down', 'down', 'Not up'],
  ['raw', 'raw', 'TCP, UDP, TLS'],
  ['open', 'open', 'Without guard'],
] as const

/** The column for a cluster, in which a tunnel is at one of several servers. */
const SERVER: Column<TunnelRow> = {
  sort: 'server',
  head: 'Server',
  class: 'mid',
  cell: ({ server = 'this one' }) => <span class="quiet">{server}</span>,
}

const COLUMNS: readonly Column<TunnelRow>[] = [
  {
    sort: 'name',
    head: 'Name',
    cell: ({ name, kind }) => (
      <>
        <a class="name" href={hashOf({ ...place.value, open: name })}>
          {name}
        </a>
        {kind !== 'http' && <span class="tag">{kind}</span>}
      </>
    ),
  },
  { sort: 'state', head: 'State', cell: ({ state }) => <State state={state} /> },
  { sort: 'rate', head: 'Req/min', class: 'num', cell: ({ recent }) => <Rate recent={recent} /> },
  { sort: 'errors', head: 'Errors', class: 'num', cell: ({ recent }) => <Errors recent={recent} /> },
  {
    sort: 'p50',
    head: 'p50',
    class: 'num mid lo',
    cell: ({ recent }) => <Latency recent={recent} part={0.5} />,
  },
  { sort: 'p95', head: 'p95', class: 'num', cell: ({ recent }) => <Latency recent={recent} part={0.95} /> },
  { sort: 'flight', head: 'In flight', class: 'num mid lo', cell: ({ inFlight }) => inFlight || <Zero /> },
  {
    sort: 'in',
    head: 'In/min',
    class: 'num mid lo',
    cell: ({ recent }) => <Moved count={recent.bytesIn} recent={recent} />,
  },
  {
    sort: 'out',
    head: 'Out/min',
    class: 'num mid',
    cell: ({ recent }) => <Moved count={recent.bytesOut} recent={recent} />,
  },
  {
    sort: 'token',
    head: 'Token',
    class: 'mid',
    cell: ({ token }) => (token === undefined ? <Zero text="none" /> : <TokenLink name={token} />),
  },
  { sort: 'client', head: 'Client', class: 'num mid lo', cell: ({ clients }) => clients.join(', ') },
  SERVER,
  {
    sort: 'seen',
    head: 'Last seen',
    class: 'num mid',
    cell: ({ lastProvenAt }) => <Ago time={lastProvenAt} />,
  },
]

export function Tunnels() {
  const value = seen('tunnels')
  const { only, q, open } = place.value
  return (
    <>
      <Bar title="Tunnels" placeholder="Name, token or client">
        <div class="chips">
          {CHOICES.map(([choice, key, text]) => (
            <button
              key={key}
              type="button"
              class={value?.choices[key] === 0 ? 'chip idle' : 'chip'}
              aria-pressed={only === choice}
              onClick={() => change({ only: choice })}
            >
              {text} <b>{value?.choices[key]}</b>
            </button>
          ))}
        </div>
      </Bar>
      <Table
        label="Tunnels"
        columns={(value?.head.counts.servers ?? 1) > 1 ? COLUMNS : COLUMNS.filter(one => one !== SERVER)}
        rows={value?.rows}
        matching={value?.matching ?? 0}
        keyOf={({ name }) => name}
        isOpen={({ name }) => name === open}
        usual="-rate"
        empty={q === '' && only === '' ? 'No client has a tunnel.' : `No tunnel fits “${q || only}”.`}
        actions={row => <RowMenu name={row.name} items={doings(row)} />}
      />
      {open !== undefined && <Sheet name={open} open={value?.open} />}
    </>
  )
}

const probe = (name: string): void =>
  void act(api.probe(name), ({ status, durationMs, code }) =>
    status === 0 ? `${name}: ${code ?? 'no answer'}` : `${name}: ${status} in ${duration(durationMs)}`,
  )

/** Returns the actions on a tunnel. Its server runs them; a ban applies to all servers. */
function doings({ name, url, kind, server }: TunnelRow): readonly (MenuItem | undefined)[] {
  const isHttp = kind === 'http'
  const isHere = server === undefined
  return [
    { label: 'Open details', act: () => (location.hash = hashOf({ ...place.value, open: name })) },
    ...(isHttp
      ? [{ label: 'Open the address', act: () => void window.open(url, '_blank', 'noopener,noreferrer') }]
      : []),
    {
      label: 'Copy the address',
      act: () =>
        void navigator.clipboard.writeText(url).then(
          () => say('Copied'),
          () => say(url, true),
        ),
    },
    ...(isHttp && isHere ? [{ label: 'Probe now', act: () => probe(name) }] : []),
    undefined,
    ...(isHere
      ? [
          confirmed('Close…', {
            verb: `Close ${name}`,
            text: 'Its client gets the reason, and may open it again.',
            yes: () => act(api.closeTunnel(name), `${name} is closed.`),
          }),
        ]
      : []),
    confirmed('Block…', {
      verb: `Block ${name}`,
      text: 'It is closed at once, and no client can open this name until the ban is lifted.',
      yes: () => act(api.ban({ kind: 'tunnel', value: name, reason: '' }), `${name} is blocked.`),
    }),
  ]
}

/** A sheet next to the table, which Escape closes. */
function Sheet({ name, open }: { readonly name: string; readonly open: Seen['open'] }) {
  const box = useRef<HTMLElement>(null)
  const close = (): void => {
    location.hash = hashOf({ ...place.value, open: undefined, range: '' })
  }
  useEffect(() => {
    box.current?.focus()
    const leave = (event: KeyboardEvent) => {
      if (
        event.key === 'Escape' &&
        !(event.target instanceof Element && event.target.closest('dialog[open]'))
      )
        close()
    }
    document.addEventListener('keydown', leave)
    return () => document.removeEventListener('keydown', leave)
  }, [name])
  // The page shows the named tunnel, or nothing.
  const found = open?.row.name === name ? open : undefined
  const { lastProbe } = found?.row ?? {}
  return (
    <aside class="sheet" aria-labelledby="sheet" tabIndex={-1} ref={box}>
      <header>
        <h2 id="sheet">
          <span class="cut">{name}</span>
          {found !== undefined && <State state={found.row.state} />}
        </h2>
        <span class="grow" />
        {found?.row.kind === 'http' && found.row.server === undefined && (
          <button type="button" class="btn" onClick={() => probe(name)}>
            Probe
          </button>
        )}
        {found !== undefined && (
          <Menu label={`More for ${name}`} at="right" items={doings(found.row).slice(1)}>
            <Icon name="more" />
          </Menu>
        )}
        <IconButton icon="close" label="Close" onClick={close} />
      </header>
      {found === undefined ? (
        <section>
          <p class="quiet">
            {seen('tunnels') === undefined || open === undefined
              ? 'There is no such tunnel now.'
              : 'Reading…'}
          </p>
        </section>
      ) : (
        <>
          <section>
            <h3>
              <span class="grow">
                Traffic <small class="quiet">numbers of 5 minutes</small>
              </span>
              <Ranges />
            </h3>
            <dl class="nums">
              <Figure name="Requests/min">
                <Rate recent={found.row.recent} />
              </Figure>
              <Figure name="Errors">
                <Errors recent={found.row.recent} />
              </Figure>
              <Figure name="p50">
                <Latency recent={found.row.recent} part={0.5} />
              </Figure>
              <Figure name="p95">
                <Latency recent={found.row.recent} part={0.95} />
              </Figure>
              <Figure name="In flight">{found.row.inFlight}</Figure>
            </dl>
            <Why row={found.row} clients={found.clients} />
            {found.series.isKept ? (
              <Graphs series={found.series} />
            ) : (
              <p class="quiet">
                {found.row.server === undefined
                  ? 'This server keeps no traffic: admin.store.'
                  : `The server ${found.row.server} has not sent its graphs yet.`}
              </p>
            )}
          </section>
          <section>
            <h3>Errors, since the start</h3>
            <Codes row={found.row} />
          </section>
          <section>
            <h3>Connection</h3>
            <dl class="facts">
              <dt>Address</dt>
              <dd>
                <Address url={found.row.url} />
              </dd>
              <dt>Clients</dt>
              <dd>
                {found.clients.length === 0 && <span class="is-warn">away</span>}
                {found.clients.map(({ number, server, agent, wire, address, roundTripMs }) => (
                  <p key={`${server} ${number}`}>
                    {number}, {agent ?? `${wire} wire`}, from {address}
                    {roundTripMs !== undefined && `, round trip ${duration(roundTripMs)}`}
                  </p>
                ))}
              </dd>
              <dt>Token</dt>
              <dd>{found.row.token === undefined ? 'none' : <TokenLink name={found.row.token} />}</dd>
              {found.row.server !== undefined && (
                <>
                  <dt>Server</dt>
                  <dd>{found.row.server}</dd>
                </>
              )}
              <dt>Guard</dt>
              <dd>
                {found.row.isGuarded ? 'yes' : <span class="is-warn">none: anyone with the address</span>}
              </dd>
              <dt>Last seen</dt>
              <dd>
                <Ago time={found.row.lastProvenAt} />
              </dd>
              {lastProbe !== undefined && (
                <>
                  <dt>Last probe</dt>
                  <dd>
                    {lastProbe.code === undefined ? (
                      `${lastProbe.status} in ${duration(lastProbe.durationMs)}`
                    ) : (
                      <code class="is-bad">{lastProbe.code}</code>
                    )}
                    , <Ago time={lastProbe.at} />
                  </dd>
                </>
              )}
            </dl>
          </section>
        </>
      )}
    </aside>
  )
}

/** Shows where a slow tunnel spends its time. */
function Why({ row, clients }: { readonly row: TunnelRow; readonly clients: readonly ClientRow[] }) {
  const p95 = latency(row.recent, 0.95) ?? 0
  const trips = clients.flatMap(({ roundTripMs }) => roundTripMs ?? [])
  if (p95 < SLOW_MS || trips.length === 0) return null
  const trip = Math.max(...trips)
  return (
    <p class="tag warn">
      {2 * trip > p95 ? 'The way to the client takes' : 'The app takes the time: the way to the client takes'}{' '}
      {duration(trip)}
    </p>
  )
}

const Figure = ({
  name,
  children,
}: {
  readonly name: string
  readonly children: preact.ComponentChildren
}) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

function Codes({ row: { errors, codes } }: { readonly row: TunnelRow }) {
  const all = Object.entries(codes).sort(([, one], [, other]) => other - one)
  if (errors === 0 && all.length === 0) return <p class="quiet">None</p>
  return (
    <ul class="errs">
      <li>
        <span class="grow">Responses with a status of 500 or above, or none</span>
        <b>{errors.toLocaleString('en-US')}</b>
      </li>
      {all.map(([code, count]) => (
        <li key={code}>
          <code class="cut">{code}</code>
          <b>{count.toLocaleString('en-US')}</b>
        </li>
      ))}
    </ul>
  )
}
