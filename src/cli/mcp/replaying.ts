// The tools that send a request again, and save one as a file.

import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { optionInvalid } from '../../errors.ts'
import type { Diff, Edit, ExchangeDetail, ReplayResult } from '../../exchange.ts'
import { diffLines } from '../captured/diff-lines.ts'
import { saveFixture } from '../captured/fixture.ts'
import { checkPath, shortRow } from './reading.ts'
import { redactedValue } from './redact.ts'
import { SESSION_ARGUMENT, type Sessions, sessionOf } from './sessions.ts'
import type { Tool } from './tool.ts'

const VERDICTS = {
  fixed: 'fixed: it was an error, and is none any more',
  regressed: 'regressed: the new response is an error, and the first one was not',
  same: 'same: status and body are as before',
  different: 'different: neither was an error, or both were, and the responses differ',
} as const

export function replayingTools(sessions: Sessions): readonly Tool[] {
  const hidden = (value: unknown) => (sessions.reveals ? value : redactedValue(value))
  return [
    {
      name: 'replay_request',
      title: 'Replay a request',
      description:
        'Sends a captured request again to the app that it went to, and to nothing else, and says what became of it: fixed, regressed, same or different, and in which lines. The app acts on it as on the first one.',
      arguments: {
        id: { type: 'string', description: 'Id of the request, or: latest' },
        edit: {
          type: 'object',
          description: 'The changes. Everything else is sent byte for byte; masked values are the real ones.',
          properties: {
            method: { type: 'string', description: 'Such as POST' },
            path: { type: 'string', description: 'With query, beginning with /' },
            fields: {
              type: 'array',
              description: 'All header fields, in order.',
              items: {
                type: 'object',
                description: 'A field',
                properties: {
                  name: { type: 'string', description: 'Name' },
                  value: { type: 'string', description: 'Value' },
                },
              },
            },
            body: { type: 'string', description: 'The whole body, as text' },
          },
        },
        session: SESSION_ARGUMENT,
      },
      required: ['id'],
      isReading: false,
      call: async (given, signal) => {
        const session = sessionOf(sessions, given)
        const original = await session.ask<ExchangeDetail>(
          `exchanges/${encodeURIComponent(given.text('id') ?? '')}`,
          undefined,
          signal,
        )
        // Checked against the schema.
        const edit = given.object('edit') as Edit | undefined
        checkPath(edit?.path)
        const { replays } = await session.ask<ReplayResult>(
          `exchanges/${original.id}/replay`,
          edit === undefined ? {} : { edit },
          signal,
        )
        const { exchange, verdict } = replays[0]!
        const diff = await session.ask<Diff>(`diff?a=${original.id}&b=${exchange.id}`, undefined, signal)
        const lines = diffLines(edit === undefined ? answersOf(diff) : diff)
        return {
          said: `Verdict ${VERDICTS[verdict]}. ${original.status || 'No response'} became ${exchange.status || 'no response'}; the new one is request ${exchange.id}.`,
          captured: hidden({ row: shortRow(exchange), ...(lines.length > 0 && { diff: lines }) }),
        }
      },
    },
    {
      name: 'save_fixture',
      title: 'Save a request as a fixture',
      description:
        'Writes a captured request to a new .http file below the current folder, for tests. Secrets are left out.',
      arguments: {
        id: { type: 'string', description: 'Id of the request, or: latest' },
        file: { type: 'string', description: 'Such as test/hooks/paid.http' },
        session: SESSION_ARGUMENT,
      },
      required: ['id', 'file'],
      isReading: false,
      call: async given => {
        const name = given.text('file') ?? ''
        const path = await realPath(resolve(name))
        const inside = relative(await realpath(process.cwd()), path)
        if (!name.endsWith('.http') || inside.startsWith('..') || isAbsolute(inside))
          throw optionInvalid('file must end with .http and be below the current folder.')
        await saveFixture(sessionOf(sessions, given), given.text('id') ?? '', path)
        return { said: `Written to ${inside}.` }
      },
    },
  ]
}

/** Returns where a new file would be, because a link in its path may lead to another place. */
async function realPath(path: string): Promise<string> {
  const folder = dirname(path)
  const real = await realpath(folder).catch(() => (folder === path ? path : realPath(folder)))
  return join(real, basename(path))
}

/** Returns a comparison without the lines that differ in every replay. */
function answersOf(diff: Diff): Diff {
  const { request } = diff
  return { ...diff, request: { ...request, fields: [], first: { ...request.first, isSame: true } } }
}
