// In place of the splicing thread: dies when it gets its first job.

import { workerData } from 'node:worker_threads'
import { Board } from '../../src/splice/board.ts'
import type { ThreadData } from '../../src/splice/thread.ts'

const { memory } = workerData as ThreadData // what `splicer.ts` gives it
const board = new Board(memory)
const orders = {
  start() {
    throw new Error('thrown in the splicing thread')
  },
  stop() {},
}
setInterval(() => board.follow(orders), 1)
