// In place of the worker thread: dies when it gets its first splice.

import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Command, ThreadData } from '../../src/accelerator/thread.ts'

const { commands } = workerData as ThreadData // what `worker-thread.ts` gives it
setInterval(() => {
  const command = receiveMessageOnPort(commands)?.message as Command | undefined // likewise
  if (command?.kind === 'splice') throw new Error('thrown in the splicing thread')
}, 1)
