// Values of flags that several commands read.

import { readFileSync } from 'node:fs'
import { Option } from 'commander'
import { TunnelError } from '../../errors.ts'
import type { Flags } from '../settings/flags.ts'

export function repeatable(flags: string, description: string): Option {
  return new Option(flags, description).argParser((value: string, earlier: readonly string[] | undefined) => [
    ...(earlier ?? []),
    value,
  ])
}

export function wholeNumber(flags: Flags, name: string): number | undefined {
  const text = flags.text(name)
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new TunnelError('OPTION_INVALID', `${flags.label(name)} "${text}" is not a whole number, such as 60.`)
}

/** As milliseconds. */
export function seconds(flags: Flags, name: string, least = 0): number | undefined {
  const text = flags.text(name)
  if (text === undefined) return undefined
  if (/^\d{1,6}(?:\.\d+)?$/.test(text) && Number(text) >= least) return Math.round(Number(text) * 1_000)
  const above = least === 0 ? '' : ' above 0'
  throw new TunnelError(
    'OPTION_INVALID',
    `${flags.label(name)} "${text}" is not a number of seconds${above}, such as 60.`,
  )
}

/** The text of a PEM file with certificates. */
export function readAuthority(path: string, label: string): string {
  return readPem(path, label, 'CERTIFICATE-----', 'certificate')
}

/** The text of a PEM file with a private key. */
export function readKey(path: string, label: string): string {
  return readPem(path, label, 'PRIVATE KEY-----', 'private key')
}

export function readText(path: string, label: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new TunnelError('OPTION_INVALID', `${label}: ${path} cannot be read.`, { cause })
  }
}

function readPem(path: string, label: string, mark: string, what: string): string {
  const pem = readText(path, label)
  if (pem.includes(mark)) return pem
  throw new TunnelError('OPTION_INVALID', `${label}: ${path} holds no ${what} in PEM format.`)
}
