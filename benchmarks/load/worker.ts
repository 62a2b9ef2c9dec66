// The program behind `own.ts`: makes one load, prints one report.

import type { Endpoint } from '../peers/peer.ts'
import { download, upload } from './bulk.ts'
import { closedLoop } from './closed.ts'
import { busy, held } from './held.ts'
import type { Load } from './load.ts'
import { openLoop } from './open.ts'
import { roundTrips } from './trips.ts'

interface Order {
  readonly endpoint: Endpoint
  readonly load:
    | Load
    | { readonly kind: 'held'; readonly path: string; readonly connections: number }
    | BusyLoad
}

interface BusyLoad {
  readonly kind: 'busy'
  readonly path: string
}

// Written by own.ts, which shares the types.
const { endpoint, load } = JSON.parse(process.argv[2]!) as Order

switch (load.kind) {
  case 'closed':
    report(await closedLoop(endpoint, load))
    break
  case 'open':
    report(await openLoop(endpoint, load))
    break
  case 'down':
    report(await download(endpoint, load))
    break
  case 'up':
    report(await upload(endpoint, load))
    break
  case 'trips':
    report(await roundTrips(endpoint, load))
    break
  case 'held':
    await held(endpoint, load.path, load.connections)
    break
  case 'busy':
    await busy(endpoint, load.path)
    break
}

function report(result: object): void {
  console.log(`REPORT ${JSON.stringify(result)}`)
  process.exit(0)
}
