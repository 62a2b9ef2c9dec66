// A CarrierHandler that remembers what happened and lets a test wait for it.

import type { CarrierHandler } from '../../src/session/carrier.ts'
import { Recorder } from './recorder.ts'

/** A carrier tells what a socket tells, save for half-closes. */
export class CarrierRecorder extends Recorder implements CarrierHandler {
  override received(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    super.received(bytes.subarray(start, end))
  }
}
