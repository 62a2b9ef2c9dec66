// Writes small files in the MaxMind DB format (https://maxmind.github.io/MaxMind-DB/), to read with other people's readers.

type Value = string | number | { readonly [key: string]: Value }

/** A subtree for 0 and one for 1; a value where a network ends. */
interface Node {
  readonly sides: [Node | Value | undefined, Node | Value | undefined]
}

/** `rows`: the value of each network, such as `['192.0.2.0/24', { country: { iso_code: 'DE' } }]`. No network is inside of another. */
export function mmdb(rows: readonly (readonly [network: string, value: Value])[]): Buffer {
  const root: Node = { sides: [undefined, undefined] }
  for (const [network, value] of rows) add(root, bitsOf(network), value)
  const nodes: Node[] = [root]
  for (const node of nodes) nodes.push(...node.sides.filter(isNode))
  const data: Buffer[] = []
  let dataBytes = 0
  const recordOf = (side: Node | Value | undefined): number => {
    if (side === undefined) return nodes.length
    if (isNode(side)) return nodes.indexOf(side)
    const offset = dataBytes
    const bytes = encode(side)
    data.push(bytes)
    dataBytes += bytes.length
    return nodes.length + 16 + offset
  }
  const tree = Buffer.alloc(nodes.length * 6)
  for (const [index, { sides }] of nodes.entries())
    for (const [side, one] of sides.entries()) tree.writeUIntBE(recordOf(one), index * 6 + side * 3, 3)
  const metadata = encode({
    node_count: nodes.length,
    record_size: 24,
    ip_version: 6,
    database_type: 'Test-Country',
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_700_000_000,
    description: { en: 'for tests' },
  })
  return Buffer.concat([
    tree,
    Buffer.alloc(16),
    ...data,
    Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'),
    metadata,
  ])
}

const isNode = (side: Node | Value | undefined): side is Node =>
  typeof side === 'object' && 'sides' in side && Array.isArray(side.sides)

function add(root: Node, bits: string, value: Value): void {
  let node = root
  for (const [at, bit] of bits.split('').entries()) {
    const side = Number(bit) as 0 | 1
    if (at === bits.length - 1) {
      node.sides[side] = value
      return
    }
    const next = node.sides[side]
    const inner: Node = isNode(next) ? next : { sides: [undefined, undefined] }
    node.sides[side] = inner
    node = inner
  }
}

/** IPv4 networks are below `::/96`. */
function bitsOf(network: string): string {
  const [address = '', length = ''] = network.split('/')
  const numbers = (text: string, base: number) =>
    text.split(base === 10 ? '.' : ':').map(one => Number.parseInt(one, base))
  if (!address.includes(':')) {
    const bits = numbers(address, 10).map(one => one.toString(2).padStart(8, '0'))
    return '0'.repeat(96) + bits.join('').slice(0, Number(length))
  }
  const [head = '', tail = ''] = address.split('::')
  const [first, last] = [head, tail].map(text => (text === '' ? [] : numbers(text, 16)))
  const groups = [...first!, ...Array.from({ length: 8 - first!.length - last!.length }, () => 0), ...last!]
  return groups
    .map(one => one.toString(2).padStart(16, '0'))
    .join('')
    .slice(0, Number(length))
}

function encode(value: Value): Buffer {
  if (typeof value === 'string')
    return Buffer.concat([control(2, Buffer.byteLength(value)), Buffer.from(value)])
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return Buffer.concat([control(6, 4), bytes])
  }
  const entries = Object.entries(value)
  return Buffer.concat([
    control(7, entries.length),
    ...entries.flatMap(([key, one]) => [encode(key), encode(one)]),
  ])
}

/** Sizes below 29. */
const control = (type: number, size: number): Buffer => Buffer.from([(type << 5) | size])
