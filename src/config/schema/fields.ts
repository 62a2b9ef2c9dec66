// The tables of configuration files, made from their rows.

import type { Fields } from '../field.ts'
import { CLIENT_ROWS } from './client.ts'
import { GUARD_ROWS } from './guard.ts'
import { FieldTables } from './rows.ts'
import { SERVER_ROWS } from './server.ts'

const tables = new FieldTables({ ...GUARD_ROWS, ...CLIENT_ROWS, ...SERVER_ROWS })

export const CLIENT_FIELDS: Fields = tables.of('client')
export const SERVICE_FIELDS: Fields = tables.of('service')
export const GUARD_FIELDS: Fields = tables.of('guard')
export const SERVER_FIELDS: Fields = tables.of('server')
/** The keys of a guard that raw tunnels may have. */
export const RAW_GUARD_KEYS: ReadonlySet<string> = new Set(['allow', 'deny', 'rate', 'ttl'])
