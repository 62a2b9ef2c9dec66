// Saves a captured request as a file for tests: its head without secrets, and its body byte for byte.

import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { optionInvalid, TunnelError } from '../../errors.ts'
import type { ExchangeDetail } from '../../exchange.ts'
import type { InspectorSession } from './inspector-session.ts'

/** Writes a new file, never over an existing one. Rejects with `BODY_TRUNCATED`, `REPLAY_IMPOSSIBLE` or `OPTION_INVALID`. */
export async function saveFixture(
  session: InspectorSession,
  id: string,
  file: string,
): Promise<ExchangeDetail> {
  if (!file.endsWith('.http')) throw optionInvalid(`${file} must end with .http.`)
  const detail = await session.ask<ExchangeDetail>(`exchanges/${encodeURIComponent(id)}`)
  if (detail.replayable !== true) throw new TunnelError(detail.replayable)
  const bytes = await session.bytes(`exchanges/${detail.id}/as/http`)
  try {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, bytes, { flag: 'wx' })
  } catch (cause) {
    const isThere = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
    const what = isThere
      ? 'is there already: delete it, or name another file'
      : `cannot be written: ${(cause as Error).message}`
    throw optionInvalid(`${file} ${what}.`, { cause })
  }
  return detail
}
