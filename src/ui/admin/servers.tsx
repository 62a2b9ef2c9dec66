// Traffic as graphs, and the servers with their certificates.

import { Graphs, Ranges } from './graph.tsx'
import { Card, Certificates, Servers as Table } from './overview.tsx'
import { change, place, seen } from './state.ts'
import { Skeleton } from './table.tsx'

export function Traffic() {
  const value = seen('traffic')
  return (
    <div class="page">
      <div class="titled">
        <h1>Traffic</h1>
        <select
          class="input"
          aria-label="Of"
          value={place.value.server ? `server ${place.value.server}` : place.value.tunnel}
          onChange={({ currentTarget }) => {
            const [tunnel = '', server = ''] = currentTarget.value.split('server ')
            change({ tunnel, server })
          }}
        >
          <option value="">all tunnels</option>
          {(value?.servers.length ?? 0) > 1 && (
            <Options label="Servers" names={value?.servers} prefix="server " />
          )}
          <Options label="Tunnels" names={value?.names} />
        </select>
        <span class="grow" />
        <Ranges />
      </div>
      {value === undefined ? (
        <Skeleton />
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

interface OptionsProps {
  readonly label: string
  readonly names: readonly string[] | undefined
  readonly prefix?: string
}

const Options = ({ label, names = [], prefix = '' }: OptionsProps) => (
  <optgroup label={label}>
    {names.map(name => (
      <option key={name} value={prefix + name}>
        {name}
      </option>
    ))}
  </optgroup>
)

export function Servers() {
  const value = seen('servers')
  return (
    <div class="page">
      <h1>Servers</h1>
      {value === undefined ? (
        <Skeleton />
      ) : (
        <>
          <section class="card" aria-label="Servers">
            <Table rows={value.servers} />
          </section>
          <Card title="Certificates">
            {value.certificates.length === 0 ? (
              <p class="none">None: the server speaks plain HTTP, or a proxy in front has them.</p>
            ) : (
              <Certificates rows={value.certificates} />
            )}
          </Card>
        </>
      )}
    </div>
  )
}
