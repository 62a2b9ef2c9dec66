// Finds the country of an address in a file of the operator in the MaxMind DB format (MMDB).

import { readFileSync } from 'node:fs'
import { optionInvalid, type TunnelError, whyUnreadable } from './errors.ts'
import { FileWatch } from './file-watch.ts'

/** Knows the countries of addresses. */
export interface Countries {
  /** Returns the ISO 3166-1 code of the country, such as `DE`. `undefined` if it is unknown. */
  of(address: string): string | undefined
}

/** The list entry for addresses whose country is unknown. */
const UNKNOWN = 'unknown'

/** Returns the code of an entry such as `country:DE`, or `unknown`. `undefined` if the entry is not a country. */
export function countryOf(entry: string): string | undefined {
  const [, code] = /^country:([a-z]{2}|unknown)$/i.exec(entry) ?? []
  return code?.length === 2 ? code.toUpperCase() : code?.toLowerCase()
}

/** Whether the address is in one of these countries. */
export function isInCountry(address: string, codes: ReadonlySet<string>, countries: Countries): boolean {
  return codes.has(countries.of(address) ?? UNKNOWN)
}

/** An open file of countries. */
export interface CountryFile extends Countries {
  close(): void
}

/** A row of the file: a table in those of MaxMind, DB-IP and others, a text in those of IPinfo. */
interface Row {
  readonly country?: string | { readonly iso_code?: unknown }
  readonly country_code?: unknown
}

/** The number of records that stay decoded. A file of countries has a few hundred. */
const MAX_DECODED = 4_096

/**
 * Opens an MMDB file of countries or cities, such as GeoLite2-Country.mmdb, and reads it again when it changes. The
 * whole file is in memory. `failed` is called if a changed file cannot be read; the earlier one stays in use.
 * Default: such changes are ignored. Rejects with `OPTION_INVALID` if the file cannot be read.
 */
export async function openCountries(path: string, failed?: (error: Error) => void): Promise<CountryFile> {
  const { Reader } = await import('mmdb-lib')
  const read = () => {
    try {
      return new Reader<never>(readFileSync(path), { cache: decoded() })
    } catch (cause) {
      const isMissing = cause instanceof Error && 'code' in cause
      const why = isMissing ? `: ${whyUnreadable(cause)}` : ' as an MMDB file'
      throw optionInvalid(`countries: ${path} cannot be read${why}.`, { cause })
    }
  }
  let reader = read()
  const watch = new FileWatch(
    [path],
    () => {
      try {
        reader = read()
      } catch (error) {
        // `read` only throws this.
        failed?.(error as TunnelError)
      }
    },
    error => failed?.(error),
  )
  return {
    of(address) {
      try {
        return codeOf(reader.get(address))
      } catch {
        // The text is not an address, or the file is damaged here.
        return undefined
      }
    },
    close: () => watch.stop(),
  }
}

function codeOf(row: Row | null): string | undefined {
  const { country, country_code } = row ?? {}
  const code = typeof country === 'object' ? country.iso_code : (country_code ?? country)
  return typeof code === 'string' && /^[A-Z]{2}$/.test(code) ? code : undefined
}

function decoded(): Map<string | number, unknown> {
  return new (class extends Map<string | number, unknown> {
    override set(key: string | number, value: unknown) {
      if (this.size >= MAX_DECODED) this.clear()
      return super.set(key, value)
    }
  })()
}
