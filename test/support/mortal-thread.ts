// In place of the splicing thread: the same, but it dies 100 to 500 ms after it was started.

import { Kernel } from '../../src/accelerator/kernel.ts'

const dieAt = performance.now() + 100 + 400 * Math.random()
const wait: Kernel['wait'] = Reflect.get(Kernel.prototype, 'wait')

Kernel.prototype.wait = function (poll, changes, timeoutMs) {
  if (performance.now() > dieAt) throw new Error('died of age')
  return wait.call(this, poll, changes, timeoutMs < 0 ? 50 : Math.min(timeoutMs, 50))
}
await import('../../src/accelerator/thread.ts')
