// Reads values of flags that several commands have.

import { readFileSync } from 'node:fs'
import { Option } from 'commander'
import { parseDuration, parseSize } from '../../config/quantity.ts'
import { optionInvalid, whyUnreadable } from '../../errors.ts'
import type { Flags } from '../settings/flags.ts'

export type Texts = Readonly<Record<string, string>>
/** The texts of flags, by heading of --help. */
export type FlagTexts = Readonly<Record<string, Texts>>

/**
 * Makes options from texts. Each also has a variable: with the prefix of a server, `--tls-cert` is `TUNNEL_SERVER_TLS_CERT`;
 * without a prefix there are none. An option collects its values if its text says that it is repeatable.
 */
export function flagOptions(texts: FlagTexts, prefix = 'TUNNEL_'): Option[] {
  return Object.entries(texts).flatMap(([heading, group]) =>
    Object.entries(group).map(([flags, text]) => {
      const option = new Option(flags, text)
      const { long = '' } = option
      if (text.includes('repeatable'))
        option.argParser((value: string, earlier: readonly string[] | undefined) => [
          ...(earlier ?? []),
          value,
        ])
      if (heading !== '') option.helpGroup(heading)
      return prefix === '' ? option : option.env(prefix + long.slice(2).replaceAll('-', '_').toUpperCase())
    }),
  )
}

type Given<Values> = { readonly [Key in keyof Values]?: Exclude<Values[Key], undefined | false> }

/** Returns the values without those that no flag gave: `undefined`, `false`, an empty list. */
export function given<Values extends object>(values: Values): Given<Values> {
  const isGiven = (value: unknown) =>
    value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0)
  // The remaining values have the types of their keys.
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isGiven(value))) as Given<Values>
}

export function wholeNumber(flags: Flags, name: string): number | undefined {
  const text = flags.text(name)
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw optionInvalid(`${flags.label(name)} "${text}" is not a whole number, such as 60.`)
}

/** Returns the size of a flag in bytes. `undefined` if it is not given. */
export function sizeOf(flags: Flags, name: string): number | undefined {
  const text = flags.text(name)
  if (text === undefined || text === '') return undefined
  const bytes = parseSize(text)
  if (bytes !== undefined && bytes > 0) return bytes
  throw optionInvalid(`${flags.label(name)} "${text}" is not a size, such as 10MiB.`)
}

/** Returns the duration of a flag in milliseconds. `undefined` if it is not given. */
export function duration(flags: Flags, name: string, leastMs = 1): number | undefined {
  const text = flags.text(name)
  return text === undefined || text === '' ? undefined : timeOf(text, flags.label(name), leastMs)
}

/** Parses `500ms`, `30s` or `2h`, or a number of seconds. Returns milliseconds. Throws `OPTION_INVALID`. */
export function timeOf(text: string, label: string, leastMs = 1): number {
  const isBare = /^[\d.]+$/.test(text)
  const ms = parseDuration(isBare ? `${text}s` : text)
  if (ms !== undefined && ms >= leastMs) return ms
  const above = leastMs === 0 ? '' : ' above 0'
  throw optionInvalid(
    `${label} "${text}" is not a time${above}, such as 500ms, 30s or 2h; a number alone is seconds.`,
  )
}

/** Returns the text of a PEM file with certificates. */
export function readAuthority(path: string, label: string): string {
  return readPem(path, label, 'CERTIFICATE-----', 'certificate')
}

/** Returns the text of a PEM file with a private key. */
export function readKey(path: string, label: string): string {
  return readPem(path, label, 'PRIVATE KEY-----', 'private key')
}

export function readText(path: string, label: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw optionInvalid(`${label}: ${path} cannot be read: ${whyUnreadable(cause)}.`, {
      cause,
    })
  }
}

function readPem(path: string, label: string, mark: string, what: string): string {
  const pem = readText(path, label)
  if (pem.includes(mark)) return pem
  throw optionInvalid(`${label}: ${path} holds no ${what} in PEM format.`)
}
