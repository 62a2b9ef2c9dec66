// Which failures of visits the faults explain, and which nothing does.

import { median } from '../../benchmarks/measure/samples.ts'
import type { Fault, Occurrence } from './faults.ts'
import type { Visit } from './visitors-process.ts'

export interface Course {
  readonly visits: readonly Visit[]
  readonly occurrences: readonly Occurrence[]
  /** Added to both ends of each time: processes do not agree on the moment at which one of them was killed. */
  readonly slackMs: number
}

/** What one fault did, all its times together. */
export interface Row {
  readonly fault: Fault
  readonly times: number
  /** Visits under way while it was, or while it still had an effect. */
  readonly requests: number
  readonly failed: number
  /** From its begin to the begin of the last visit that failed by it; of each time. */
  readonly seconds: readonly number[]
  /** Under way in its time, and failed though the documentation does not say that they may. */
  readonly outside: number
}

export interface Verdict {
  readonly rows: readonly Row[]
  readonly wrong: readonly Visit[]
  readonly truncated: readonly Visit[]
  /** Failed, and no fault says that they may. */
  readonly unexplained: readonly Visit[]
}

const hasFailed = ({ judgement }: Visit): boolean => judgement.startsWith('failed')

export function judge({ visits, occurrences, slackMs }: Course): Verdict {
  const isUnderWay = ({ from, until }: Occurrence, { begin, end }: Visit): boolean =>
    end >= from - slackMs && begin <= until + slackMs
  const failed = visits.filter(hasFailed)
  const explained = new Set(
    failed.filter(visit => occurrences.some(one => isUnderWay(one, visit) && one.covers(visit))),
  )
  const faults = new Set(occurrences.map(({ fault }) => fault))
  const rows = [...faults].map((fault): Row => {
    const own = occurrences.filter(one => one.fault === fault)
    const ofIt = own.map(one => failed.filter(visit => isUnderWay(one, visit) && one.covers(visit)))
    return {
      fault,
      times: own.length,
      requests: visits.filter(visit => own.some(one => isUnderWay(one, visit))).length,
      failed: ofIt.flat().length,
      seconds: own.map(({ from }, at) =>
        Math.max(0, ...(ofIt[at] ?? []).map(({ begin }) => (begin - from) / 1_000)),
      ),
      outside: failed.filter(visit => !explained.has(visit) && own.some(one => isUnderWay(one, visit)))
        .length,
    }
  })
  return {
    rows,
    wrong: visits.filter(({ judgement }) => judgement === 'wrong'),
    truncated: visits.filter(({ judgement }) => judgement === 'truncated'),
    unexplained: failed.filter(visit => !explained.has(visit)),
  }
}

/** Seconds to recover: of the median time, and the longest. */
export function recovery({ seconds }: Row): readonly [median: number, max: number] {
  return [median(seconds), Math.max(...seconds)]
}
