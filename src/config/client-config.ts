// The meaning of a client's configuration file: the connection, and its services.

import { Check, type Checked, type CheckOptions } from './check.ts'
import { type CheckedService, checkServices, Taken } from './check-service.ts'
import type { TableNode } from './node.ts'
import { CLIENT_FIELDS, SERVER_FIELDS, SERVICE_FIELDS } from './schema/fields.ts'
import type { Output } from './schema/inferred.ts'
import type { ServiceConfig } from './service.ts'

export interface ClientConfig {
  readonly kind: 'client'
  readonly connection: ConnectionOptions
  /** The services in the order of the file. No two have the same name, subdomain or wished port. */
  readonly services: readonly ServiceConfig[]
}

/** The options of the connection to the server. A missing option has the client's default. */
export type ConnectionOptions = Omit<Output<'client'>, 'services'>

export function checkClient(root: TableNode, options: CheckOptions): Checked<ClientConfig> {
  const check = new Check(options)
  const values = check.table(root, CLIENT_FIELDS, '', [
    { fields: SERVICE_FIELDS, where: 'in a service, such as [services.web]' },
    { fields: SERVER_FIELDS, where: "in a server's file" },
  ]) as Partial<Output<'client'>> // the rows say so; a fault names what is missing
  const { services: checked = new Map<string, CheckedService>(), ...connection } = values
  const { pingIntervalMs = 10_000, deadAfterMs = 20_000 } = connection
  if (deadAfterMs <= pingIntervalMs) {
    check.fault(
      connection.deadAfterMs === undefined ? 'ping-interval' : 'dead-after',
      'dead-after must be more than ping-interval',
    )
  }
  const { inspect } = connection
  if (typeof inspect === 'object') {
    const { memory = 33_554_432, maxBody = 262_144 } = inspect
    if (maxBody * 2 > memory) check.fault('inspect', 'inspect.max-body may be at most half of inspect.memory')
  }
  if (values.services?.size === 0 && check.faults.length === 0)
    check.fault('services', 'services has none: add one, such as [services.web]')
  const taken = new Taken(check)
  const services = [...checked].flatMap(([name, service]) => checkServices(name, service, check, taken))
  return check.checked({ kind: 'client', connection, services })
}
