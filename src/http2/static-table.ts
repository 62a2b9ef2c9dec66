// The static table of HPACK (RFC 7541 appendix A) as bytes: each name with its value right after it.

import { ascii } from '../http/characters.ts'

const ENTRIES: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ...[
    'accept-language',
    'accept-ranges',
    'accept',
    'access-control-allow-origin',
    'age',
    'allow',
    'authorization',
    'cache-control',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-location',
    'content-range',
    'content-type',
    'cookie',
    'date',
    'etag',
    'expect',
    'expires',
    'from',
    'host',
    'if-match',
    'if-modified-since',
    'if-none-match',
    'if-range',
    'if-unmodified-since',
    'last-modified',
    'link',
    'location',
    'max-forwards',
    'proxy-authenticate',
    'proxy-authorization',
    'range',
    'referer',
    'refresh',
    'retry-after',
    'server',
    'set-cookie',
    'strict-transport-security',
    'transfer-encoding',
    'user-agent',
    'vary',
    'via',
    'www-authenticate',
  ].map(name => [name, ''] as const),
]

/** The number of entries of the static table. The indexes of dynamic entries follow. */
export const STATIC_COUNT = 61

// The indexes at which the pseudo-header fields begin.
export const AUTHORITY = 1
export const METHOD = 2
export const PATH = 4
export const SCHEME = 6
export const STATUS = 8

export const STATIC_BYTES: Uint8Array = ascii(ENTRIES.flat().join(''))
/** The positions by index (from 1): where the name begins, where the value begins, where the value ends. */
export const NAME_STARTS: Uint16Array = new Uint16Array(STATIC_COUNT + 1)
export const VALUE_STARTS: Uint16Array = new Uint16Array(STATIC_COUNT + 1)
export const VALUE_ENDS: Uint16Array = new Uint16Array(STATIC_COUNT + 1)
export const INDEX_OF_NAME: ReadonlyMap<string, number> = new Map(
  ENTRIES.map(([name], index) => [name, index + 1] as const).reverse(),
)

let end = 0
for (const [index, [name, value]] of ENTRIES.entries()) {
  NAME_STARTS[index + 1] = end
  VALUE_STARTS[index + 1] = end += name.length
  VALUE_ENDS[index + 1] = end += value.length
}
