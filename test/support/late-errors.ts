// Before the end of each file: an error that a timer or a promise throws behind the file's last test is seen, and fails it.

import { afterAll } from 'bun:test'

/** What throws later than this is not seen. */
const LATE_MS = 25

afterAll(async () => {
  await Bun.sleep(LATE_MS)
})
