// Terms of a lane that no server granted.

import type { LaneTerms } from '../../src/accelerator.ts'

/** The only Host that it serves. */
export const HOST = 'app.localhost'

export const laneTerms = (): LaneTerms => ({
  routingEpoch: new Int32Array(new SharedArrayBuffer(4)),
  grantedEpoch: 0,
  reportsLeft: new Int32Array(new SharedArrayBuffer(4)),
  hostWithPort: HOST,
  hop: { address: '192.0.2.1', proto: 'http', trusted: false, hostHeader: '' },
  isForGets: false,
  isReported: false,
  isMeasured: false,
  tracing: undefined,
  log: undefined,
  allotted: [],
  limits: { maxHeadBytes: 32_768, maxHeaderCount: 100, maxTargetBytes: 8_192, maxBodyBytes: 0 },
})
