// The settings of the inspector, from its options.

import type { InspectOptions } from '../../client/options.ts'
import { optionInvalid } from '../../errors.ts'
import type { Bounds } from '../../exchange.ts'

/** The settings with all defaults. */
export interface InspectSettings extends Bounds {
  /** The names in lower case. */
  readonly secrets: ReadonlySet<string>
  /** The port. `first`: the first free one from this port on. */
  readonly port: number | { readonly first: number } | undefined
  readonly store: string | undefined
}

/** The header, form and JSON fields that must not appear in a bug report. */
const SECRETS = ['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'password']

/** The port where developers look for it. */
const FIRST_PORT = 4_040

const MIN_MEMORY_BYTES = 1_048_576

/** Returns the settings. `undefined` if the inspector is off. Throws `OPTION_INVALID`. */
export function inspectSettings(option: boolean | InspectOptions | undefined): InspectSettings | undefined {
  if (option === undefined || option === false) return undefined
  const given = option === true ? {} : option
  const memoryBytes = whole('memory', given.memory ?? 33_554_432, MIN_MEMORY_BYTES)
  const maxBodyBytes = whole('maxBody', given.maxBody ?? 262_144, 1)
  if (maxBodyBytes * 2 > memoryBytes)
    throw optionInvalid('inspect.maxBody may be at most half of inspect.memory.')
  const { port = { first: FIRST_PORT } } = given
  if (typeof port === 'number') whole('port', port, 0, 65_535)
  return {
    memoryBytes,
    maxBodyBytes,
    maxExchanges: whole('maxExchanges', given.maxExchanges ?? 1_000, 1),
    maxFrames: whole('maxFrames', given.maxFrames ?? 10_000, 1),
    rate: whole('rate', given.rate ?? 50, 0),
    secrets: secretsOf(given),
    port: port === false ? undefined : port,
    store: given.store || undefined,
  }
}

/** Returns the names of secret fields, in lower case. */
export function secretsOf({ secrets = [] }: Pick<InspectOptions, 'secrets'>): ReadonlySet<string> {
  return new Set([...SECRETS, ...secrets.map(name => name.toLowerCase())])
}

function whole(name: string, value: number, least: number, most: number = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`
  throw optionInvalid(`inspect.${name} must be a whole number ${range}, not ${value}.`)
}
