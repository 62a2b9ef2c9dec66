// The table of a hostile run, in Markdown, and what a terminal shows meanwhile.

import { join } from 'node:path'
import { environment } from '../../measure/environment.ts'
import { table } from '../../measure/table.ts'
import type { Finding, Use } from './judge.ts'

export function findingsTable(findings: readonly Finding[]): string {
  return table(
    [
      'attack',
      'requests of others',
      'wrong / failed',
      'p50 / p99 / max, ms',
      'app itself p99',
      'server MB',
      'client MB',
      'server descriptors',
      'verdict',
    ],
    findings.map(finding => [
      finding.does,
      number(finding.requests),
      `${number(finding.wrong)} / ${number(finding.failed)}`,
      [finding.p50, finding.p99, finding.max].map(ms).join(' / '),
      ms(finding.directP99),
      megabytes(finding.server),
      megabytes(finding.client),
      `${finding.server.files[0]} → ${finding.server.files[1]} → ${finding.server.files[2]}`,
      finding.harms.length === 0 ? 'no harm' : `**harm**: ${finding.harms.join('; ')}`,
    ]),
  )
}

const PAGE = join(import.meta.dir, '../../../docs/security.md')
const PLACE = /(<!-- attacks: [^\n]*-->\n)[\s\S]*(<!-- end of attacks -->)/

/** Puts the table where docs/security.md has a place for it, with the day, the machine and the commit. */
export async function writeTable(text: string): Promise<void> {
  const page = await Bun.file(PAGE).text()
  if (!PLACE.test(page)) throw new Error('docs/security.md has no place for the table')
  const { cpu, cores, bun } = await environment()
  const where = `${new Date().toISOString().slice(0, 10)}, ${cores} cores (${cpu}), Bun ${bun}.`
  await Bun.write(
    PAGE,
    page.replace(PLACE, (_, begin: string, end: string) => `${begin}\n${where}\n\n${text}\n\n${end}`),
  )
}

/** Before, at the peak, afterwards. */
function megabytes({ mb }: Use): string {
  return mb.map(Math.round).join(' → ')
}

function ms(value: number): string {
  return value < 10 ? value.toFixed(1) : number(Math.round(value))
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

/** One finding in a line, as it comes. */
export function lineOf(finding: Finding): string {
  const { name, requests, failed, p50, p99, max, tally, server, serverCores } = finding
  const did = Object.entries(tally).map(([what, count]) => `${what} ${number(Math.round(count))}`)
  const verdict = finding.harms.length === 0 ? '✓' : '✗'
  const lines = [
    `${verdict} ${name.padEnd(24)} ${requests} requests, ${failed} failed, p50 ${ms(p50)} p99 ${ms(p99)} max ${ms(max)} ms, ${megabytes(server)} MB, ${serverCores.toFixed(2)} cores (${did.join(', ')})`,
    ...finding.harms.map(harm => `    ${harm}`),
  ]
  const errors = Object.entries(finding.told).map(([code, count]) => `${code} ${count}`)
  if (errors.length > 0) lines.push(`    the server told: ${errors.join(', ')}`)
  return lines.join('\n')
}
