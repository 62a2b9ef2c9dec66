// Checks the configuration file of a folder for `localtunnels doctor`: that it has no fault, and that its apps listen.

import { findFiles } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import { faultLines } from '../commands/config.ts'
import type { ShareSettings } from '../commands/share.ts'
import { type Destination, destinationOfFile, trustsServer } from '../settings/destination.ts'
import { Logins } from '../settings/logins.ts'
import { serviceTarget } from '../settings/target.ts'
import { count } from '../terminal/format.ts'
import { type Check, checkApp } from './checks.ts'

export interface FileChecks {
  readonly checks: readonly Check[]
  /** The connection of `up` to the server, if the file names one. */
  readonly way?: { readonly destination: Destination; readonly client: ShareSettings['client'] }
}

/** Checks the file that `up` would use. Without a file, or for a server's, there are no checks. */
export async function checkFile(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<FileChecks> {
  const [path, other] = findFiles('.')
  if (path === undefined) return { checks: [] }
  const what = 'file'
  if (other !== undefined) {
    const fix = 'Name one of them: localtunnels up --config <file>'
    return { checks: [{ verdict: 'fail', what, found: `there are two, ${path} and ${other}`, fix }] }
  }
  const logins = () => new Logins(environment)
  const found = (server: string) => trustsServer(server, environment, logins)
  const { config, faults } = await loadConfig(path, { environment, found })
  if (config === undefined) {
    const fix = `Run: localtunnels config check ${path}`
    return { checks: faultLines(path, faults).map(line => ({ verdict: 'fail', what, found: line, fix })) }
  }
  if (config.kind === 'server') return { checks: [] }
  const { connection, services } = config
  const checks: Check[] = [{ verdict: 'ok', what, found: `${path}: ${count(services.length, 'service')}` }]
  for (const service of services) {
    // Only a response could show whether anything listens on UDP.
    if (service.kind === 'udp') continue
    for (const { fix, ...check } of await checkApp(serviceTarget(service)))
      checks.push({ ...check, what: service.name, ...(fix && { fix: `Start the app, or change ${path}.` }) })
  }
  if (connection.server === undefined) return { checks }
  const file = { connection, path, isNamed: false, isLocal: false }
  return { checks, way: { destination: destinationOfFile(file, environment, logins), client: connection } }
}
