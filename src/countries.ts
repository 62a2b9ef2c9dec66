// The country of an address, from a file of the operator in the MaxMind DB format (MMDB).

import { readFileSync } from 'node:fs'
import { optionInvalid, type TunnelError, whyUnreadable } from './errors.ts'
import { FileWatch } from './file-watch.ts'

/** Knows countries of addresses. */
export interface Countries {
  /** The ISO 3166-1 code of the country, such as `DE`; `undefined`: it is not known. */
  of(address: string): string | undefined
}

/** The entry of a list for addresses whose country is not known. */
const UNKNOWN = 'unknown'

/** The code of an entry such as `country:DE`, or `unknown`; `undefined`: the entry is not one of a country. */
export function countryOf(entry: string): string | undefined {
  const [, code] = /^country:([a-z]{2}|unknown)$/i.exec(entry) ?? []
  return code?.length === 2 ? code.toUpperCase() : code?.toLowerCase()
}

/** Whether one of these codes is that of the address. */
export function isInCountry(address: string, codes: ReadonlySet<string>, countries: Countries): boolean {
  return codes.has(countries.of(address) ?? UNKNOWN)
}

/** A file that is open. */
export interface CountryFile extends Countries {
  close(): void
}

/** A row of the file: of MaxMind, DB-IP and others a table, of IPinfo a text. */
interface Row {
  readonly country?: string | { readonly iso_code?: unknown }
  readonly country_code?: unknown
}

/** Records that stay decoded. A file of countries has some hundreds. */
const MAX_DECODED = 4_096

/**
 * Opens an MMDB file of countries or cities, such as GeoLite2-Country.mmdb, and reads it again when it changes. All of it is in memory.
 * `failed`: a change cannot be read, and the earlier file stays in use. Default: such changes are ignored. Rejects with `OPTION_INVALID`
 * for a file that cannot be read.
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
        // `read` throws nothing else.
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
        // The text is not an address, or the file has a fault here.
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
