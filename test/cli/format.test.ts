// Numbers and foreign text on a terminal.

import { expect, test } from 'bun:test'
import {
  approximateWidth,
  cut,
  formatBytes,
  formatDuration,
  visible,
  visibleJson,
} from '../../src/cli/terminal/format.ts'

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [4_100, '4.1 kB'],
  [9_960, '10 kB'],
  [999_499, '999 kB'],
  [999_500, '1.0 MB'],
  [5_368_709_120, '5.4 GB'],
])('%p bytes are %p', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test.each([
  [0.4, '0 ms'],
  [18.2, '18 ms'],
  [1_240, '1.2 s'],
  [12_000, '12 s'],
  [119_000, '119 s'],
  [31 * 60_000, '31 min'],
  [125 * 60_000, '2 h 5 min'],
  [47.9 * 3_600_000, '47 h 54 min'],
  [90 * 86_400_000, '90 d 0 h'],
])('%p ms are %p', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

test('visible shows what would move the cursor, turn the text round or hide', () => {
  expect(visible('/a\x1b[2J\r\n\x07')).toBe('/a\\x1b[2J\\x0d\\x0a\\x07')
  expect(visible('/\u202egnp.exe\u200b')).toBe('/\\u202egnp.exe\\u200b')
  expect(visible('/bücher?q=日本')).toBe('/bücher?q=日本')
})

test('cut keeps within the columns, counting wide characters twice', () => {
  expect(cut('abcdef', 6)).toBe('abcdef')
  expect(cut('abcdefg', 6)).toBe('abcde…')
  expect(cut('日本語日本語', 6)).toBe('日本…')
  expect(cut('abc', 0)).toBe('')
})

test.each(['', 'GET /a', 'größer', 'e\u0301', '日本語', '한국어', '👍', '👨‍👩‍👧', '→ ●', 'ｆｕｌｌ', '♥️'])(
  'without Bun %j takes as many columns',
  text => {
    expect(approximateWidth(text)).toBe(Bun.stringWidth(text))
  },
)

test('JSON of foreign text has no character that a terminal would act on, and says the same', () => {
  const event = { path: '/\u001b[31m\u009b2J\u202e\u2028\u2029\u007f\u{e0041}\r\né😀"' }
  const text = visibleJson(event)
  expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(text).toContain('é😀')
  expect(JSON.parse(text)).toEqual(event)
})
