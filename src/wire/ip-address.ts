// Converts IP addresses between text and bytes, strictly: a text that two readers could take for two addresses is refused.

const DOTTED = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/
const GROUP = /^[0-9a-f]{1,4}$/i
/** The length of the longest IPv6 address as text: six groups and a dotted IPv4 address. */
const MAX_TEXT_LENGTH = 45

/**
 * Returns four or sixteen bytes. `undefined` if the text is not an address. Zones, brackets, and leading zeros in
 * IPv4 (octal for some readers) are refused.
 */
export function parseIp(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

function parseIpv4(text: string): Uint8Array | undefined {
  const [, ...parts] = DOTTED.exec(text) ?? []
  const numbers = parts.map(Number)
  return parts.length === 4 && numbers.every(number => number < 256) ? Uint8Array.from(numbers) : undefined
}

function parseIpv6(text: string): Uint8Array | undefined {
  if (text.length > MAX_TEXT_LENGTH) return undefined
  const [before = '', after, ...more] = text.split('::')
  if (more.length > 0) return undefined
  const head = groupsOf(before, after === undefined)
  const tail = after === undefined ? [] : groupsOf(after, true)
  if (head === undefined || tail === undefined) return undefined
  const missing = 16 - head.length - tail.length
  // "::" stands for at least one group of zeros.
  if (after === undefined ? missing !== 0 : missing < 2) return undefined
  const bytes = new Uint8Array(16)
  bytes.set(head)
  bytes.set(tail, 16 - tail.length)
  return bytes
}

/** Returns the bytes of groups with single colons between them; the last may be a dotted IPv4 address. */
function groupsOf(text: string, mayEndDotted: boolean): number[] | undefined {
  if (text === '') return []
  const bytes: number[] = []
  const groups = text.split(':')
  for (const [index, group] of groups.entries()) {
    const dotted = mayEndDotted && index === groups.length - 1 ? parseIpv4(group) : undefined
    if (dotted !== undefined) bytes.push(...dotted)
    else if (GROUP.test(group)) bytes.push(Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff)
    else return undefined
  }
  return bytes
}

/**
 * Returns the canonical text of an address (RFC 5952): lower case, with the longest run of zero groups as `::`. An IPv4-mapped
 * address (`::ffff:0:0/96`) becomes IPv4, so that code which compares addresses does not meet one host under two names.
 */
export function formatIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (isMapped(bytes)) return bytes.subarray(12).join('.')
  const groups: number[] = []
  for (let at = 0; at < 16; at += 2) groups.push((bytes[at]! << 8) | bytes[at + 1]!)
  let runStart = 0
  let runLength = 1 // a single zero group is written out
  for (let start = 0; start < 8; start++) {
    let end = start
    while (groups[end] === 0) end++
    if (end - start > runLength) [runStart, runLength] = [start, end - start]
  }
  const hex = (some: readonly number[]) => some.map(group => group.toString(16)).join(':')
  if (runLength === 1) return hex(groups)
  return `${hex(groups.slice(0, runStart))}::${hex(groups.slice(runStart + runLength))}`
}

/** Returns sixteen bytes for both kinds of addresses; an IPv4 address is mapped. */
export function widen(bytes: Uint8Array): Uint8Array {
  return bytes.length === 16 ? bytes : Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...bytes)
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every(byte => byte === 0)
}

/**
 * Returns an IPv4 address, also if it is IPv4-mapped, or the first 64 bits of an IPv6 address: a host that has one
 * address with these 64 bits has all of them.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const bytes = parseIp(address.split('%', 1)[0] ?? '')
  if (bytes === undefined) return address
  const text = formatIp(bytes)
  if (text === '::1' || !text.includes(':')) return text
  return `${formatIp(bytes.fill(0, 8))}/64`
}
