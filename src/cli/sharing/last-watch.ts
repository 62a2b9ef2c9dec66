// Ends the started command if this process is killed and can do nothing itself.

import { spawn } from 'node:child_process'

/** The time from SIGTERM to SIGKILL, in seconds. */
const KILL_AFTER_S = 10
/** The script. Its standard input ends with the process at the other end. */
const SCRIPT = `read -r _; kill -s TERM -- "$1" && sleep ${KILL_AFTER_S} && kill -s KILL -- "$1"`

/**
 * Ends a process, or a process group if negative, together with this program. Returns a function that ends the watch.
 * Does nothing on Windows.
 */
export function endWithUs(target: number): () => void {
  if (process.platform === 'win32') return () => {}
  // Has a group of its own, so that signals to ours do not reach it.
  const watch = spawn('sh', ['-c', SCRIPT, 'sh', `${target}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  // The command also runs if there is no `sh`.
  watch.once('error', () => {})
  watch.unref()
  return () => void watch.kill('SIGKILL')
}
