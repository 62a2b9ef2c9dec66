// Bytes as numbers and characters, sixteen a line.

const MAX_BYTES = 8_192

export function Hex({ bytes }: { readonly bytes: Uint8Array }) {
  const lines: string[] = []
  for (let at = 0; at < Math.min(bytes.length, MAX_BYTES); at += 16) {
    const some = [...bytes.subarray(at, at + 16)]
    const numbers = some.map(one => one.toString(16).padStart(2, '0')).join(' ')
    const characters = some.map(one => (one > 31 && one < 127 ? String.fromCharCode(one) : '.')).join('')
    lines.push(`${at.toString(16).padStart(6, '0')}  ${numbers.padEnd(47)}  ${characters}`)
  }
  if (bytes.length > MAX_BYTES) lines.push(`… ${bytes.length - MAX_BYTES} bytes more`)
  return (
    <pre class="text" tabIndex={0}>
      {lines.join('\n')}
    </pre>
  )
}
