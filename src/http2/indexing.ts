// Decides by name which fields an encoder puts into the dynamic table: those that repeat, and no secrets.

/** The field becomes an entry, because the next message likely has the same value. */
export const INDEXED = 0
/** The field differs from message to message, so as an entry it would only displace others. */
export const PASSING = 1
/**
 * The field is a secret, which neither this side nor one that passes the block on may index: the size of a block must
 * not show whether a guess was right (RFC 7541 section 7.1).
 */
export const SENSITIVE = 2

const SENSITIVE_NAMES = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'www-authenticate',
  'authentication-info',
  'x-api-key',
  'x-auth-token',
  'x-csrf-token',
  'x-xsrf-token',
]

const PASSING_NAMES = [
  ':path',
  'age',
  'content-length',
  'content-range',
  'content-disposition',
  'date',
  'etag',
  'expires',
  'forwarded',
  'grpc-timeout',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'range',
  'referer',
  'request-id',
  'retry-after',
  'traceparent',
  'tracestate',
  'x-forwarded-for',
  'x-real-ip',
  'x-request-id',
  'x-response-time',
  'x-runtime',
]

/** The names that are not INDEXED. */
export const INDEXING: ReadonlyMap<string, number> = new Map([
  ...PASSING_NAMES.map(name => [name, PASSING] as const),
  ...SENSITIVE_NAMES.map(name => [name, SENSITIVE] as const),
])
