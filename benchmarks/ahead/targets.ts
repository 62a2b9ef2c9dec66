// What is to be reached, line by line: whose figure counts, by which factor, or which plain limit.

export interface Target {
  readonly row: string
  readonly figure: string
  readonly title: string
  readonly better: 'higher' | 'lower'
  /** The best of these is the mark; `all`: of every peer that ran. */
  readonly against: readonly string[] | 'all'
  readonly factor: number
  /** A limit in the figure's own unit, whoever else reaches it. */
  readonly limit?: number
  /** What the existing localtunnels 0.2.12 reached on another day: a mark for the JSON wire where it is not installed. */
  readonly existing?: number
}

const FAST: readonly string[] = ['rathole', 'bore']

export const TARGETS: readonly Target[] = [
  rps('t50', 'GET 20 B, 50 connections, req/s', FAST, 1.1, 20_609),
  cpu('t50', 'same, CPU s per 100k', 6.04),
  rps('t100', 'GET 20 B, 100 connections, req/s', FAST, 1.1, 21_334),
  cpu('t100', 'same, CPU s per 100k'),
  latency('t1', 'p50', 'GET 20 B, 1 connection, p50 ms', ['rathole'], 0.267),
  rps('t500', 'GET 20 B, 500 connections, req/s', ['bore'], 1.05, 16_555),
  latency('t500', 'p99', 'same, p99 ms', ['bore'], 44.8),
  rps('t10', 'GET 20 B, 10 connections, req/s', ['rathole'], 1, 15_293),
  rps('close10', 'new connection per request, 10 at a time, req/s', 'all', 1.3, 8_978),
  rps('64k10', 'GET 64 KB, 10 connections, req/s', ['frp-tcp'], 1.4, 2_540),
  rate('1m10', 'GET 1 MB, 10 connections, MB/s', ['frp-tcp'], 1.1, 403),
  rate('down', '100 MB down, one stream, MB/s', 'all', 1.1),
  rate('down10', '10 × 10 MB down at once, MB/s', 'all', 1.1, 181),
  rate('up', '100 MB up, MB/s, against bore', ['bore'], 1),
  rate('up', '100 MB up, MB/s, against frp spliced', ['frp-nomux'], 0.8),
  latency('open1000', 'p50', '1,000/s open loop, p50 ms', ['rathole'], 0.43),
  latency('open1000', 'p99', '1,000/s open loop, p99 ms', ['rathole'], 1.34),
  latency('open4000', 'p50', '4,000/s open loop, p50 ms', ['rathole'], 0.52),
  latency('open4000', 'p99', '4,000/s open loop, p99 ms', ['rathole'], 4.16),
  {
    row: 'held',
    figure: 'kbPerConnection',
    title: 'memory per open connection at 1,000, KB',
    better: 'lower',
    against: ['rathole'],
    factor: 1,
    limit: 34,
    existing: 16,
  },
  {
    row: 'mixed',
    figure: 'factor',
    title: 'p99 of 20 B beside a bulk download ÷ without it',
    better: 'lower',
    against: 'all',
    factor: 1,
    limit: 3,
  },
]

function rps(
  row: string,
  title: string,
  against: Target['against'],
  factor: number,
  existing?: number,
): Target {
  return { row, figure: 'rps', title, better: 'higher', against, factor, existing }
}

function rate(
  row: string,
  title: string,
  against: Target['against'],
  factor: number,
  existing?: number,
): Target {
  return { row, figure: 'mbps', title, better: 'higher', against, factor, existing }
}

function cpu(row: string, title: string, existing?: number): Target {
  return { row, figure: 'cpu100k', title, better: 'lower', against: FAST, factor: 0.8, existing }
}

function latency(
  row: string,
  figure: string,
  title: string,
  against: Target['against'],
  existing?: number,
): Target {
  return { row, figure, title, better: 'lower', against, factor: 1, existing }
}
