// Why a saved run is not published.

import type { SavedRun } from '../measure/result.ts'

/** `code`: the hash of what is here now. Empty: nothing speaks against it. */
export function faultsOf({ suites }: SavedRun, code: string): readonly string[] {
  const distinct = (of: (one: (typeof suites)[number]) => string): readonly string[] => [
    ...new Set(suites.map(of)),
  ]
  const faults: string[] = []
  const commits = distinct(({ environment }) => environment.commit)
  if (commits.length > 1) faults.push(`it is of several commits: ${commits.join(', ')}`)
  const machines = distinct(({ environment: { cpu, cores } }) => `${cpu}, ${cores} cores`)
  if (machines.length > 1) faults.push(`it is of several machines: ${machines.join('; ')}`)
  for (const { suite, environment } of suites)
    if (environment.code !== code)
      faults.push(
        `${suite} was measured with other code (${environment.code ?? 'unknown'}) than this (${code})`,
      )
  for (const { suite, quick, rounds, tables } of suites) {
    if (quick) faults.push(`${suite} is a smoke run`)
    for (const { id, rounds: said, rows } of tables) {
      if (said === undefined) continue
      if (said > rounds) faults.push(`${suite} ${id} says ${said} rounds, its suite ${rounds}`)
      const few = rows.flatMap(({ name, cells }) =>
        Object.values(cells).some(cell => typeof cell === 'object' && cell.length < said) ? [name] : [],
      )
      if (few.length > 0) faults.push(`${suite} ${id} has fewer than ${said} rounds of ${few.join(', ')}`)
    }
  }
  return faults
}
