// The page for visitors while the app or this client is away. The server shows it, because the client may be gone.

import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { Install } from '../../../client/contracts/part.ts'
import type { AwayOptions } from '../../../client/options.ts'
import { optionInvalid, whyUnreadable } from '../../../errors.ts'
import { checkNames, type Names, namesOf } from '../../../option-names.ts'
import { type AwayPage, isPageStatus, MAX_PAGE_BYTES } from '../away-page.ts'

const NAMES: Names<AwayOptions> = namesOf<AwayOptions>()('file text status')

const TYPES: Readonly<Record<string, AwayPage['type']>> = {
  '.html': 'text/html',
  '.htm': 'text/html',
  '.txt': 'text/plain',
  '.json': 'application/json',
}

export const installPages: Install = () => ({
  follow({ options }) {
    const away = options?.away
    if (away === undefined) return undefined
    let page = pageOf(away)
    return {
      wishes() {
        try {
          page = pageOf(away)
        } catch {
          // The file is being written, or is gone: the last content stays.
        }
        return { away: page }
      },
    }
  },
})

function pageOf(away: AwayOptions): AwayPage {
  checkNames(away, NAMES, 'away')
  const { file, status, text = file === undefined ? undefined : textOf(file) } = away
  if (text === undefined || (file !== undefined && away.text !== undefined))
    throw optionInvalid('away needs either a file or a text.')
  if (status !== undefined && !isPageStatus(status))
    throw optionInvalid(`away.status must be 200, or 400 to 599, not ${String(status)}.`)
  const type = file === undefined ? 'text/plain' : TYPES[extname(file).toLowerCase()]
  if (type === undefined)
    throw optionInvalid(`away.file: "${file}" is not a .html, .htm, .txt or .json file.`)
  if (Buffer.byteLength(text) > MAX_PAGE_BYTES)
    throw optionInvalid(`away: the page is longer than ${MAX_PAGE_BYTES} bytes.`)
  return { type, text, ...(status !== undefined && { status }) }
}

function textOf(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (cause) {
    const why = cause instanceof TypeError ? 'it is not UTF-8' : whyUnreadable(cause)
    throw optionInvalid(`away.file: "${file}" cannot be read: ${why}.`, { cause })
  }
}
