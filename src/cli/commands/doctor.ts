// `localtunnels doctor`: checks what a tunnel needs, one line each, and gives the fix for each failed check.

import { isLoopback } from '../../names.ts'
import { VERSION } from '../../version.ts'
import {
  type Check,
  checkApp,
  checkEnvironment,
  checkNoServer,
  checkRoundTrip,
  checkRuntime,
  checkServer,
  checkWay,
} from '../doctor/checks.ts'
import { checkFile } from '../doctor/file-checks.ts'
import { checkHttpPort } from '../doctor/https-checks.ts'
import { EXIT } from '../exit-codes.ts'
import type { Destination } from '../settings/destination.ts'
import type { Target } from '../settings/target.ts'
import { visible, visibleJson, wrapped } from '../terminal/format.ts'
import type { Palette } from '../terminal/palette.ts'
import type { ShareSettings } from './share.ts'

export interface DoctorSettings {
  readonly destination: Destination
  readonly client: ShareSettings['client']
  /** The app. `undefined` if none was named, so that none is checked. */
  readonly target: Target | undefined
  /** Whether the command line names the server. Then the file of the folder does not count. */
  readonly isServerGiven: boolean
  /** Whether to print a line of JSON for each check, and one at the end. */
  readonly isJson: boolean
}

export interface DoctorRun {
  readonly palette: Palette
  /** The width of the terminal, at which lines are broken between words. */
  readonly columns: number
  readonly environment: Readonly<Record<string, string | undefined>>
  write(text: string): void
}

/** Runs the checks. Resolves with the exit code. */
export async function doctor(settings: DoctorSettings, run: DoctorRun): Promise<number> {
  let faults = 0
  const show = (checks: readonly Check[]) => {
    for (const check of checks) {
      if (check.verdict === 'fail') faults++
      run.write(settings.isJson ? jsonLine({ type: 'check', ...check }) : line(check, run))
    }
  }
  show([checkRuntime(VERSION), checkEnvironment(run.environment)])
  if (settings.target !== undefined) show(await checkApp(settings.target))
  const file = settings.target === undefined ? await checkFile(run.environment) : undefined
  show(file?.checks ?? [])
  const { destination, client: given } = (settings.isServerGiven ? undefined : file?.way) ?? settings
  const { servers, notices } = destination
  show(notices.map(({ message }) => ({ verdict: 'note', what: 'token', found: message })))
  if (servers.length === 0) show([checkNoServer()])
  for (const { server, token, ca } of servers) {
    const client = { ...(ca !== undefined && { ca }), ...given }
    const { way, checks: wayChecks } = checkWay(server, client, run.environment)
    show(wayChecks)
    const checks = way === undefined ? wayChecks : await checkServer(way)
    if (way !== undefined) show(checks)
    // A round trip after a failed check would only fail again.
    if (!checks.some(({ verdict }) => verdict === 'fail'))
      show(await checkRoundTrip(server, { ...client, token }))
    const { host = '' } = way?.server.address ?? {}
    if (way?.server.isSecure && !isLoopback(host)) show([await checkHttpPort(way.dial, host)])
  }
  if (settings.isJson) run.write(jsonLine({ type: 'checked', faults }))
  else run.write(faults === 0 ? '\nNothing wrong.\n' : `\n${faults} of these must be fixed.\n`)
  return faults === 0 ? EXIT.ok : EXIT.faultsFound
}

const jsonLine = (event: object): string => `${visibleJson(event)}\n`

/** The column of results. On a narrow terminal they are below the check. */
const INDENT = 21
const NARROW_COLUMNS = 60

function line({ verdict, what, found, fix }: Check, { palette, columns }: DoctorRun): string {
  const colour = { ok: palette.green, fail: palette.red, note: palette.yellow }[verdict]
  const isNarrow = columns < NARROW_COLUMNS
  const indent = isNarrow ? 2 : INDENT
  const margin = `\n${' '.repeat(indent)}`
  const advice = fix === undefined ? [] : wrapped(`→ ${fix}`, columns - indent)
  const lines = [...wrapped(visible(found), columns - indent), ...advice]
  const shown = lines.join(margin).replace(`${margin}→`, `${margin}${palette.bold('→')}`)
  return `${colour(verdict.padEnd(5))} ${what.padEnd(14)}${isNarrow ? margin : ' '}${shown}\n`
}
