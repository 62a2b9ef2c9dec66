// Names of certificates: how they are spelled, and which wildcard covers them.

/** A pattern for DNS names: at most 253 characters, labels of at most 63. `_` is not for hosts. */
const HOST = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Returns a name in lower case, without the dot at its end. */
export function normalName(name: string): string {
  const lower = name.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** Whether it is spelled as a host is, `localhost` included. */
export function isHostName(name: string): boolean {
  return HOST.test(name)
}

/** Whether it is a host's name with at least two labels, and no address: what authorities certify. */
export function isCertifiable(name: string): boolean {
  return HOST.test(name) && name.includes('.') && !/\.[0-9]+$/.test(name)
}

/** Returns `*.example.com` for `www.example.com`; a wildcard stands for one label (RFC 6125, 6.4.3). */
export function wildcardOf(name: string): string {
  const dot = name.indexOf('.')
  return dot === -1 ? '*' : `*${name.slice(dot)}`
}

/** Returns `example.com` for `*.example.com`, and other names unchanged. */
export function baseName(name: string): string {
  return name.startsWith('*.') ? name.slice(2) : name
}
