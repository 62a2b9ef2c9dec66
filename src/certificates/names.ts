// Names of certificates: their spelling, and the wildcards that cover them.

/** A pattern for DNS names: at most 253 characters, with labels of at most 63. `_` is not allowed in hosts. */
const HOST = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Returns a name in lower case, without the dot at its end. */
export function normalName(name: string): string {
  const lower = name.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** Whether the name is spelled like a host, including `localhost`. */
export function isHostName(name: string): boolean {
  return HOST.test(name)
}

/** Whether authorities certify the name: a host with at least two labels, and not an address. */
export function isCertifiable(name: string): boolean {
  return HOST.test(name) && name.includes('.') && !/\.[0-9]+$/.test(name)
}

/** Returns `*.example.com` for `www.example.com`. A wildcard stands for one label (RFC 6125 section 6.4.3). */
export function wildcardOf(name: string): string {
  const dot = name.indexOf('.')
  return dot === -1 ? '*' : `*${name.slice(dot)}`
}

/** Returns `example.com` for `*.example.com`, and other names unchanged. */
export function baseName(name: string): string {
  return name.startsWith('*.') ? name.slice(2) : name
}
