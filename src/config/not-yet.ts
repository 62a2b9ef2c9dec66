// What a configuration file may say already, and this version does not do yet.

import type { ServiceConfig } from './client-config.ts'
import { kebabOf } from './field.ts'

const KINDS: ReadonlySet<string> = new Set<ServiceConfig['kind']>(['udp'])
const OPTIONS: readonly string[] = ['wildcard', 'routes', 'pool', 'health']

/** One sentence for each; none when all of it is there. */
export function notYet(service: ServiceConfig): readonly string[] {
  const { name, kind, options } = service
  if (KINDS.has(kind)) return [`services.${name}: kind = "${kind}" is not in this version yet.`]
  const given = OPTIONS.filter(option => option in options)
  return given.map(option => `services.${name}.${kebabOf(option)} is not in this version yet.`)
}
