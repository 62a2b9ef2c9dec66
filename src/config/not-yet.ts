// What a configuration file may say already, and this version does not do yet.

import { kebabOf } from './field.ts'
import type { ServiceConfig } from './service.ts'

/** Kinds of service that the client has no tunnels for. test/config/not-yet.test.ts says when it has. */
export const KINDS_NOT_YET: readonly ServiceConfig['kind'][] = []
/** Options that the client's tunnels do not know; likewise. */
export const OPTIONS_NOT_YET: readonly string[] = []

/** One sentence for each; none when all of it is there. */
export function notYet(service: ServiceConfig): readonly string[] {
  const { name, kind, options } = service
  if (KINDS_NOT_YET.includes(kind)) return [`services.${name}: kind = "${kind}" is not in this version yet.`]
  const given = OPTIONS_NOT_YET.filter(option => option in options)
  return given.map(option => `services.${name}.${kebabOf(option)} is not in this version yet.`)
}
