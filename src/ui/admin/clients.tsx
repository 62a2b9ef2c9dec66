// The connected clients.

import type { ClientRow } from '../../parts/admin/rows.ts'
import { duration } from '../parts/format.ts'
import type { MenuItem } from '../parts/menu.tsx'
import { at, hashOf } from './address.ts'
import { api } from './api.ts'
import { TokenLink } from './overview.tsx'
import { act, confirmed, go, place, seen } from './state.ts'
import { Bar, type Column, RowMenu, Table } from './table.tsx'
import { Ago, Zero } from './words.tsx'

const SHOWN_TUNNELS = 3

/** The column for a cluster. */
const SERVER: Column<ClientRow> = {
  sort: 'server',
  head: 'Server',
  class: 'mid',
  cell: ({ server = 'this one' }) => <span class="quiet">{server}</span>,
}

const COLUMNS: readonly Column<ClientRow>[] = [
  { sort: 'number', head: 'Client', cell: ({ number }) => <span class="name">{number}</span> },
  {
    sort: 'token',
    head: 'Token',
    cell: ({ token }) => (token === undefined ? <Zero text="none" /> : <TokenLink name={token} />),
  },
  { sort: 'agent', head: 'Version', class: 'mid', cell: ({ agent, wire }) => agent ?? `${wire} wire` },
  { sort: 'address', head: 'Address', cell: ({ address }) => <code>{address}</code> },
  {
    sort: 'connected',
    head: 'Connected',
    class: 'num mid',
    cell: ({ connectedAt }) => <Ago time={connectedAt} />,
  },
  SERVER,
  {
    sort: 'trip',
    head: 'Round trip',
    class: 'num',
    cell: ({ roundTripMs }) => (roundTripMs === undefined ? <Zero text="—" /> : duration(roundTripMs)),
  },
  {
    sort: 'tunnels',
    head: 'Tunnels',
    cell: ({ tunnels }) => (
      <span class="wrap">
        {tunnels.slice(0, SHOWN_TUNNELS).map(name => (
          <a key={name} class="name" href={hashOf({ ...at('tunnels'), open: name })}>
            {name}{' '}
          </a>
        ))}
        {tunnels.length > SHOWN_TUNNELS && (
          <span class="quiet">and {tunnels.length - SHOWN_TUNNELS} more</span>
        )}
      </span>
    ),
  },
]

export function Clients() {
  const value = seen('clients')
  return (
    <>
      <Bar title="Clients" placeholder="Token, address, version or tunnel" />
      <Table
        label="Clients"
        columns={(value?.head.counts.servers ?? 1) > 1 ? COLUMNS : COLUMNS.filter(one => one !== SERVER)}
        rows={value?.rows}
        matching={value?.matching ?? 0}
        keyOf={({ number, server }) => `${server} ${number}`}
        usual="number"
        empty={place.value.q === '' ? 'No client is connected.' : `No client fits “${place.value.q}”.`}
        actions={row => <RowMenu name={`client ${row.number}`} items={doings(row)} />}
      />
    </>
  )
}

/** Returns the actions on a client. Its server disconnects it; a ban applies to all servers. */
function doings({ number, server, address, tunnels }: ClientRow): readonly (MenuItem | undefined)[] {
  return [
    { label: 'Show its tunnels', act: () => go({ view: 'tunnels', q: address }) },
    undefined,
    ...(server === undefined
      ? [
          confirmed('Disconnect…', {
            verb: `Disconnect client ${number}`,
            text: `Its tunnels (${tunnels.length}) close at once.`,
            yes: () => act(api.closeClient(number), `Client ${number} is disconnected.`),
          }),
        ]
      : []),
    confirmed('Block its address…', {
      verb: `Block ${address}`,
      text: 'Neither clients nor visitors from there get in until the ban is lifted.',
      yes: () => act(api.ban({ kind: 'address', value: address, reason: '' }), `${address} is blocked.`),
    }),
  ]
}
