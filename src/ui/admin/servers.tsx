// Traffic as graphs, and the servers with their certificates.

import { Graphs, Ranges } from './graph.tsx'
import { Card, Servers as Table } from './overview.tsx'
import { change, place, seen } from './state.ts'
import { day } from './words.tsx'

export function Traffic() {
  const value = seen('traffic')
  return (
    <div class="page">
      <div class="titled">
        <h1>Traffic</h1>
        <select
          class="input"
          aria-label="Tunnel"
          value={place.value.tunnel}
          onChange={({ currentTarget }) => change({ tunnel: currentTarget.value })}
        >
          <option value="">all tunnels</option>
          {value?.names.map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <span class="grow" />
        <Ranges />
      </div>
      {value === undefined ? (
        <p class="empty loading">Loading…</p>
      ) : value.series.isKept ? (
        <Graphs series={value.series} />
      ) : (
        <p class="empty">
          This server keeps no traffic: <code>admin.store</code> in its configuration.
        </p>
      )}
    </div>
  )
}

export function Servers() {
  const value = seen('servers')
  return (
    <div class="page">
      <h1>Servers</h1>
      {value === undefined ? (
        <p class="empty loading">Loading…</p>
      ) : (
        <>
          <Card title="Servers">
            <Table rows={value.servers} />
          </Card>
          <Card title="Certificates">
            {value.certificates.length === 0 ? (
              <p class="none">None: the server speaks plain HTTP, or a proxy in front has them.</p>
            ) : (
              <ul>
                {value.certificates.map(({ name, notAfter, daysLeft }) => (
                  <li key={name}>
                    <code class="cut">{name}</code>
                    <span class={daysLeft < 4 ? 'tag bad' : daysLeft < 14 ? 'tag warn' : 'tag'}>
                      {daysLeft} days
                    </span>
                    <span class="quiet">ends {day(notAfter)}</span>
                  </li>
                ))}
              </ul>
            )}
          </Card>
        </>
      )}
    </div>
  )
}
