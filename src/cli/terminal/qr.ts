// A URL as a QR code of half blocks, two modules per character.

import { renderUnicodeCompact } from 'uqr'

export function qrCode(url: string): string {
  return renderUnicodeCompact(url)
    .split('\n')
    .map(line => `  ${line}`)
    .join('\n')
}
