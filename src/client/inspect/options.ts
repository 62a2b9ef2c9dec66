// What the inspector can be told, and what it works with.

import { TunnelError } from '../../errors.ts'
import type { Bounds } from './exchange.ts'

/** Options of the inspector. Sizes are bytes; `0` is refused with `OPTION_INVALID` unless said otherwise. */
export interface InspectOptions {
  /**
   * All that is kept in memory. Default 33,554,432 (32 MiB): a day of webhooks. At least 1,048,576. At the limit the oldest
   * exchange that is not pinned is dropped; pinned ones use at most half.
   */
  readonly memory?: number
  /** Of each body, WebSocket message and server-sent event. Default 262,144 (256 KiB): most JSON and HTML. What is beyond is counted. */
  readonly maxBody?: number
  /** Exchanges kept. Default 1,000. At the limit the oldest that is not pinned is dropped. */
  readonly maxExchanges?: number
  /** WebSocket messages and server-sent events kept, of all exchanges together. Default 10,000. At the limit the oldest is dropped. */
  readonly maxFrames?: number
  /**
   * Requests a second, behind a burst of `maxExchanges`, above which only some are captured: a person reads no more, and
   * the others are as fast as without the inspector. Default 50. `0`: every request is captured, whatever it costs.
   */
  readonly rate?: number
  /** Names of fields of headers, forms and JSON whose values are shown only when asked for, as those of Authorization, Cookie and `password` are. Default none. */
  readonly secrets?: readonly string[]
  /**
   * Port of the page and the API on 127.0.0.1 and ::1. Default 4040, else the next that is free. `0`: any free one. `false`: neither,
   * for programs that read `tunnel.exchanges`. One that is given and in use: `PORT_IN_USE`.
   */
  readonly port?: number | false
  /**
   * Path of a SQLite file (mode 0600) in which exchanges are kept across restarts, within the same bounds. Bodies and secrets are in
   * it as they came. Default none: nothing is written to disk. In use by another client, or not usable: `INSPECT_STORE_FAILED`. On
   * Node it needs 22.13.
   */
  readonly store?: string
}

/** With every default in place. */
export interface InspectSettings extends Bounds {
  /** Lower-case. */
  readonly secrets: ReadonlySet<string>
  /** `first`: it and the next ones, until one is free. */
  readonly port: number | { readonly first: number } | undefined
  readonly store: string | undefined
}

/** Header fields, and the field of forms and JSON that must not be in a bug report. */
const SECRETS = ['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'password']

/** Where developers look for it. */
const FIRST_PORT = 4_040

const MIN_MEMORY_BYTES = 1_048_576

/** `undefined`: off. Throws `OPTION_INVALID`. */
export function inspectSettings(option: boolean | InspectOptions | undefined): InspectSettings | undefined {
  if (option === undefined || option === false) return undefined
  const given = option === true ? {} : option
  const memoryBytes = whole('memory', given.memory ?? 33_554_432, MIN_MEMORY_BYTES)
  const maxBodyBytes = whole('maxBody', given.maxBody ?? 262_144, 1)
  if (maxBodyBytes * 2 > memoryBytes)
    throw new TunnelError('OPTION_INVALID', 'inspect.maxBody may be at most half of inspect.memory.')
  const { port = { first: FIRST_PORT } } = given
  if (typeof port === 'number') whole('port', port, 0, 65_535)
  return {
    memoryBytes,
    maxBodyBytes,
    maxExchanges: whole('maxExchanges', given.maxExchanges ?? 1_000, 1),
    maxFrames: whole('maxFrames', given.maxFrames ?? 10_000, 1),
    rate: whole('rate', given.rate ?? 50, 0),
    secrets: new Set([...SECRETS, ...(given.secrets ?? []).map(name => name.toLowerCase())]),
    port: port === false ? undefined : port,
    store: given.store || undefined,
  }
}

function whole(name: string, value: number, least: number, most: number = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`
  throw new TunnelError('OPTION_INVALID', `inspect.${name} must be a whole number ${range}, not ${value}.`)
}
