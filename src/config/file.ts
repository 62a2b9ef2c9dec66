// Finds the configuration file and reads its text. An unreadable file is a fault, never an exception.

import { closeSync, existsSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { whyUnreadable } from '../errors.ts'
import type { Fault } from './fault.ts'

/** The maximum size of a configuration or certificate. */
const MAX_FILE_BYTES = 1_048_576

export const EXTENSIONS = ['.toml', '.yaml', '.yml', '.json', '.ts'] as const
export type Extension = (typeof EXTENSIONS)[number]

/** Returns the files of this name in a folder. More than one is a fault. */
export function findFiles(folder: string): readonly string[] {
  return EXTENSIONS.map(extension => `localtunnels${extension}`).filter(name =>
    existsSync(join(folder, name)),
  )
}

export function extensionOf(path: string): Extension | undefined {
  const found = extname(path).toLowerCase()
  return EXTENSIONS.find(extension => extension === found)
}

/** Returns the text without a byte order mark. */
export function readConfigText(path: string): string | Fault {
  const read = readSmallFile(path)
  if (typeof read === 'string') return whole(read)
  const bytes = Buffer.from(read.subarray(0, 4)).toString('hex')
  if (/^(?:fffe0000|0000feff|..000000|000000..)$/.test(bytes)) return whole('is UTF-32: save it as UTF-8')
  // PowerShell 5 writes it by default.
  if (isUtf16(read)) return whole('is UTF-16: save it as UTF-8')
  if (read.includes(0)) return whole('is not a text file: it has zero bytes')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(read)
  } catch {
    // The decoder only throws for bytes that are not UTF-8.
    return whole('is not a text file in UTF-8')
  }
}

/** Whether the bytes are UTF-16: with its byte order mark, or ASCII text of which every other byte is zero. */
function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true
  const start = bytes.subarray(0, 64)
  const isZero = (index: number) => start[index] === 0
  const half = start.length >> 1
  return (
    half > 1 && [0, 1].some(odd => Array.from({ length: half }, (_, pair) => pair * 2 + odd).every(isZero))
  )
}

/** Returns the bytes, or why there are none, as in `cannot be read: there is no such file`. */
export function readSmallFile(path: string): Uint8Array | string {
  try {
    // Checked before it is opened, because opening a pipe would wait for its writer.
    const stats = statSync(path)
    if (stats.isDirectory()) return 'cannot be read: it is a folder'
    if (!stats.isFile()) return 'cannot be read: it is not a regular file'
    const file = openSync(path, 'r')
    try {
      const isTooLarge = fstatSync(file).size > MAX_FILE_BYTES
      return isTooLarge ? 'cannot be read: it has more than 1 MiB' : readFileSync(file)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    return `cannot be read: ${whyUnreadable(error)}`
  }
}

export function whole(message: string): Fault {
  return { at: undefined, message }
}
