// Tokens of clients and their use: created here, shown once, rotated, revoked.

import type { TokenUse } from '../../parts/admin/view-rows.ts'
import type { MenuItem } from '../parts/menu.tsx'
import { api, type TokenSecret } from './api.ts'
import { Times, typed } from './forms.tsx'
import { act, confirmed, go, isAdding, place, say, secret, seen } from './state.ts'
import { AddButton, Bar, type Column, fits, RowMenu, Table } from './table.tsx'
import { Ago, day, Errors, Latency, latency, Moved, perMinute, Rate, Zero } from './words.tsx'

const DAY_MS = 86_400_000
const SOON_DAYS = 14
const VERY_SOON_DAYS = 4

const COLUMNS: readonly (Column<TokenUse> & { readonly by?: (row: TokenUse) => number | string })[] = [
  {
    sort: 'name',
    head: 'Name',
    by: ({ name }) => name,
    cell: ({ name }) => <span class="name">{name}</span>,
  },
  { head: 'Opens', class: 'mid', cell: ({ scope }) => <code>{scopeText(scope)}</code> },
  {
    sort: 'tunnels',
    head: 'Tunnels',
    class: 'num',
    by: ({ tunnels }) => tunnels,
    cell: ({ tunnels }) => tunnels || <Zero />,
  },
  {
    sort: 'clients',
    head: 'Clients',
    class: 'num mid',
    by: ({ clients }) => clients,
    cell: ({ clients }) => clients || <Zero />,
  },
  {
    sort: 'rate',
    head: 'Req/min',
    class: 'num',
    by: ({ recent }) => perMinute(recent.requests, recent),
    cell: ({ recent }) => <Rate recent={recent} />,
  },
  {
    sort: 'errors',
    head: 'Errors',
    class: 'num',
    by: ({ recent }) => recent.errors / Math.max(1, recent.requests),
    cell: ({ recent }) => <Errors recent={recent} />,
  },
  {
    sort: 'p95',
    head: 'p95',
    class: 'num mid lo',
    by: ({ recent }) => latency(recent, 0.95) ?? -1,
    cell: ({ recent }) => <Latency recent={recent} part={0.95} />,
  },
  {
    sort: 'out',
    head: 'Out/min',
    class: 'num mid',
    by: ({ recent }) => perMinute(recent.bytesOut, recent),
    cell: ({ recent }) => <Moved count={recent.bytesOut} recent={recent} />,
  },
  {
    sort: 'used',
    head: 'Last used',
    by: ({ lastUsedAt = '' }) => lastUsedAt,
    cell: ({ lastUsedAt }) => <Ago time={lastUsedAt} />,
  },
  {
    sort: 'ends',
    head: 'Ends',
    by: ({ expiresAt = '9' }) => expiresAt,
    cell: ({ expiresAt }) => <Ends at={expiresAt} />,
  },
]
const USUAL = '-rate'

export function Tokens() {
  const value = seen('tokens')
  if (value?.isKept === false)
    return (
      <>
        <Bar title="Tokens" />
        <p class="empty">
          This server keeps no tokens: start it with <code>--tokens-db</code>.
        </p>
      </>
    )
  const rows = value && sorted(value.tokens.filter(({ name, scope }) => fits(name, scopeText(scope))))
  return (
    <>
      <Bar title="Tokens" placeholder="Name or scope">
        <AddButton text="New token" />
      </Bar>
      {isAdding.value && <Add />}
      {secret.value !== undefined && <Secret secret={secret.value} />}
      <Table
        label="Tokens"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ name }) => name}
        usual={USUAL}
        empty={place.value.q === '' ? 'There is no token yet.' : `No token fits “${place.value.q}”.`}
        actions={row => <RowMenu name={row.name} items={doings(row)} />}
      />
    </>
  )
}

function sorted(rows: readonly TokenUse[]): readonly TokenUse[] {
  const sort = place.value.sort || USUAL
  const by = COLUMNS.find(column => column.sort === sort.replace(/^-/, ''))?.by ?? (({ name }) => name)
  const direction = sort.startsWith('-') ? -1 : 1
  return rows.toSorted((one, other) => {
    const [a, b] = [by(one), by(other)]
    return a === b ? 0 : (a > b ? 1 : -1) * direction
  })
}

async function shown(made: Promise<TokenSecret>): Promise<void> {
  secret.value = await made
}

function Add() {
  const add = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault()
    const form = event.currentTarget
    const name = typed(form, 'name')
    const names = typed(form, 'names')
      .split(/[\s,]+/)
      .filter(one => one !== '')
    const forSeconds = Number(typed(form, 'seconds'))
    const wish = { name, ...(names.length > 0 && { names }), ...(forSeconds > 0 && { forSeconds }) }
    void act(
      shown(api.addToken(wish)).then(() => (isAdding.value = false)),
      `${name} is made.`,
    )
  }
  return (
    <form class="bar form" onSubmit={add}>
      <input
        class="input"
        name="name"
        required
        maxLength={64}
        placeholder="laptop-of-anna"
        aria-label="Name of the token"
      />
      <input
        class="input"
        name="names"
        placeholder="all names, or: shop ci-*"
        aria-label="Subdomains that it opens"
      />
      <Times />
      <button type="submit" class="btn main">
        Make
      </button>
    </form>
  )
}

function Secret({ secret: { name, token } }: { readonly secret: TokenSecret }) {
  return (
    <div class="banner ok secret" role="alert">
      <span class="grow">
        {name}: <code>{token}</code> <span class="second">This is the only time that it is shown.</span>
      </span>
      <button
        type="button"
        class="btn"
        onClick={() =>
          void navigator.clipboard.writeText(token).then(
            () => say('Copied'),
            () => say('The browser does not let this page copy.', true),
          )
        }
      >
        Copy
      </button>
    </div>
  )
}

function doings({ name, tunnels, clients }: TokenUse): readonly (MenuItem | undefined)[] {
  return [
    { label: 'Show its tunnels', act: () => go({ view: 'tunnels', q: name }) },
    { label: 'Show its clients', act: () => go({ view: 'clients', q: name }) },
    undefined,
    confirmed('New secret…', {
      verb: `Rotate ${name}`,
      text: 'The old one stops working.',
      yes: () => act(shown(api.rotateToken(name)), `${name} has another secret.`),
    }),
    confirmed('Revoke…', {
      verb: `Revoke ${name}`,
      text:
        tunnels + clients === 0
          ? 'No client uses it now. This cannot be undone.'
          : `Clients with it (${clients}) and their tunnels (${tunnels}) are disconnected at once. This cannot be undone.`,
      yes: () => act(api.revokeToken(name), `${name} is revoked.`),
    }),
  ]
}

function Ends({ at }: { readonly at: string | undefined }) {
  if (at === undefined) return <>never</>
  const days = (Date.parse(at) - Date.now()) / DAY_MS
  if (days >= SOON_DAYS) return <>{day(at)}</>
  return <span class={days < VERY_SOON_DAYS ? 'tag bad' : 'tag warn'}>{day(at)}</span>
}

function scopeText(scope: object): string {
  const parts = Object.entries(scope).map(([name, value]) =>
    value === true ? name : `${name} ${Array.isArray(value) ? value.join(' ') : JSON.stringify(value)}`,
  )
  return parts.length === 0 ? 'everything' : parts.join(', ')
}
