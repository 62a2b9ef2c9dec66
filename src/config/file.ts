// Finds the configuration file and reads its text. What cannot be read is a fault, never an exception.

import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { reasonOf } from './check.ts'
import type { Fault } from './fault.ts'

/** A configuration that is larger is none. */
const MAX_FILE_BYTES = 1_048_576

export const EXTENSIONS = ['.toml', '.yaml', '.yml', '.json', '.ts'] as const
export type Extension = (typeof EXTENSIONS)[number]

/** The files of this name in a folder; more than one is more than one truth. */
export function findFiles(folder: string): readonly string[] {
  return EXTENSIONS.map(extension => `localtunnels${extension}`).filter(name =>
    existsSync(join(folder, name)),
  )
}

export function extensionOf(path: string): Extension | undefined {
  const found = extname(path).toLowerCase()
  return EXTENSIONS.find(extension => extension === found)
}

/** The text without a byte order mark. */
export async function readConfigText(path: string): Promise<string | Fault> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    if (size > MAX_FILE_BYTES) return whole('has more than 1 MiB: that is no configuration file')
    const bytes = await file.readFile()
    if (bytes.includes(0)) return whole('is not a text file: it has zero bytes')
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (error instanceof TypeError) return whole('is not a text file in UTF-8')
    return whole(`cannot be read: ${reasonOf(error)}`)
  }
}

export function whole(message: string): Fault {
  return { at: undefined, message }
}
