// In place of the splicing thread: the same, but the second turn of the first job throws.

import { PipedJob } from '../../src/accelerator/job.ts'

const turn: PipedJob['turn'] = Reflect.get(PipedJob.prototype, 'turn')
let turns = 0

PipedJob.prototype.turn = function () {
  if (this.slot === 0 && turns++ === 1) throw new Error('clumsy')
  return turn.call(this)
}
await import('../../src/accelerator/thread.ts')
