// Shows how two exchanges differ, as lines for a person: - for the first, + for the second.

import type { Diff, MessageDiff } from '../../exchange.ts'
import { visible } from '../terminal/format.ts'

/** The number of unchanged lines that are shown around a change. */
const CONTEXT = 3

/** Returns the lines of a comparison. Empty if both are equal. */
export function diffLines({ request, response }: Diff): readonly string[] {
  return [...sideLines('request', request), ...sideLines('response', response)]
}

function sideLines(side: string, { first, fields, body }: MessageDiff): readonly string[] {
  const changed = fields.filter(({ isSame }) => !isSame)
  if (first.isSame && changed.length === 0 && body.isSame) return []
  const lines = [`  ${side}`]
  if (!first.isSame) lines.push(`- ${visible(first.a)}`, `+ ${visible(first.b)}`)
  for (const { name, a, b } of changed) {
    if (a !== null) lines.push(`- ${visible(`${name}: ${a}`)}`)
    if (b !== null) lines.push(`+ ${visible(`${name}: ${b}`)}`)
  }
  return [...lines, ...(body.isSame ? [] : bodyLines(body))]
}

function bodyLines({ kind, parts }: MessageDiff['body']): readonly string[] {
  if (parts.length === 0) return ['  the bodies differ, and are not text']
  const note = kind === 'cut' ? ['  of the stored part of the bodies'] : []
  return [
    ...note,
    ...parts.flatMap(({ op, text }, index) => {
      const lines = text.replace(/\n$/, '').split('\n').map(visible)
      if (op !== 'same') return lines.map(line => `${op === 'added' ? '+' : '-'} ${line}`)
      const [isFirst, isLast] = [index === 0, index === parts.length - 1]
      const [before, after] = [isLast ? 0 : CONTEXT, isFirst ? 0 : CONTEXT]
      if (lines.length <= before + after) return lines.map(line => `  ${line}`)
      return [...lines.slice(0, after), '…', ...lines.slice(lines.length - before)].map(line => `  ${line}`)
    }),
  ]
}
