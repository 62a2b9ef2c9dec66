// The paths that apps may understand where one is written. What is decided by the path of a request must hold for all of them.

/** There is one way to read it: no escapes, backslashes, empty or dot segments, parameters. */
export function isPlain(path: string): boolean {
  return /^\/[^%\\;\s?#]*$/.test(path) && !/\/\/|\/\.{1,2}(?:\/|$)/.test(path)
}

/**
 * As apps and frameworks may read it: escapes decoded once or twice, dot segments resolved, slashes made one, and what begins with
 * two slashes as a reference to another host, which `new URL(request.url, base)` makes of it.
 */
export function readingsOf(path: string): readonly string[] {
  const readings = new Set<string>()
  let current = path
  for (let round = 0; round < 3; round++) {
    for (const one of [current, current.replaceAll('\\', '/')]) {
      readings.add(one)
      readings.add(resolved(one, false))
      readings.add(resolved(one, true))
      readings.add(resolved(one.replace(/;[^/]*/g, ''), true))
      if (one.startsWith('//')) readings.add(resolved(one.replace(/^\/+[^/]*/, ''), false))
    }
    const next = decoded(current)
    if (next === current) break
    current = next
  }
  return [...readings]
}

function decoded(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** Dot segments taken out (RFC 3986 section 5.2.4), with empty ones or without. */
function resolved(path: string, dropsEmpty: boolean): string {
  const out: string[] = []
  const segments = path.split('/').slice(1)
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1
    if (segment === '..') out.pop()
    else if (segment !== '.' && (segment !== '' || !dropsEmpty || isLast)) out.push(segment)
    if (isLast && (segment === '.' || segment === '..')) out.push('')
  }
  return `/${out.join('/')}`
}
