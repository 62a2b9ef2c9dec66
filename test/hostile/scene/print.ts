// What a hostile run found: a table for the terminal, the rows as CSV, and what docs/security.md says of them.

import { join } from 'node:path'
import { environment } from '../../../benchmarks/measure/environment.ts'
import { table } from '../../../benchmarks/measure/table.ts'
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

const DOCS = join(import.meta.dir, '../../../docs')
const PAGE = join(DOCS, 'security.md')
const PLACE = /(<!-- attacks: [^\n]*-->\n)[\s\S]*(<!-- end of attacks -->)/

/** Every row in docs/security/attacks.csv, and what they come to in docs/security.md, with the day and the machine. */
export async function writeFindings(findings: readonly Finding[]): Promise<void> {
  const page = await Bun.file(PAGE).text()
  if (!PLACE.test(page)) throw new Error('docs/security.md has no place for the attacks')
  const { cpu, cores, bun } = await environment()
  const where = `${new Date().toISOString().slice(0, 10)}, ${cores} cores (${cpu}), Bun ${bun}.`
  await Bun.write(join(DOCS, 'security/attacks.csv'), csvOf(findings))
  await Bun.write(
    PAGE,
    page.replace(
      PLACE,
      (_, begin: string, end: string) => `${begin}\n${where} ${summaryOf(findings)}\n\n${end}`,
    ),
  )
}

function summaryOf(findings: readonly Finding[]): string {
  const harmful = findings.filter(({ harms }) => harms.length > 0)
  const wrong = findings.reduce((sum, finding) => sum + finding.wrong, 0)
  const failed = findings.filter(finding => finding.failed > 0)
  const slowest = findings.toSorted((one, other) => other.p99 - one.p99)
  const lines = failed.map(({ does, failed, requests }) => `- ${does}: ${failed} of ${number(requests)}`)
  const slow = slowest.slice(0, 3).map(({ does, p99 }) => `- ${does}: ${ms(p99)} ms`)
  return [
    `${findings.length} attacks, ${harmful.length} did harm. ${wrong} honest answers were wrong. Every row: [attacks.csv](security/attacks.csv).`,
    ...(harmful.length > 0
      ? [harmful.map(({ does, harms }) => `- **harm**: ${does}: ${harms.join('; ')}`).join('\n')]
      : []),
    'Honest requests that failed:',
    lines.join('\n') || 'none.',
    'The slowest 99th percentiles of honest requests:',
    slow.join('\n'),
  ].join('\n\n')
}

function csvOf(findings: readonly Finding[]): string {
  const moments = ['before', 'at the most', 'after']
  const head = [
    'attack,requests of others,wrong,failed,p50 ms,p99 ms,max ms,app itself p99 ms',
    ...['server MB', 'client MB', 'server descriptors'].flatMap(what =>
      moments.map(moment => `${what} ${moment}`),
    ),
    'harm',
  ].join(',')
  const quoted = (text: string) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const lines = findings.map(one =>
    [
      ...[one.does, one.requests, one.wrong, one.failed, one.p50, one.p99, one.max, one.directP99],
      ...[...one.server.mb, ...one.client.mb, ...one.server.files].map(Math.round),
      one.harms.join('; '),
    ]
      .map(value => quoted(String(value)))
      .join(','),
  )
  return `${[head, ...lines].join('\n')}\n`
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
