// Ends a command that was started when this process is killed and can do nothing more.

import { spawn } from 'node:child_process'

/** The time from SIGTERM to SIGKILL, in seconds. */
const KILL_AFTER_S = 10
/** The script whose standard input ends with the process that has the other end. */
const SCRIPT = `read -r _; kill -s TERM -- "$1" && sleep ${KILL_AFTER_S} && kill -s KILL -- "$1"`

/** Ends a process, or a negative process group, with this program. Returns what ends the watch. Not on Windows. */
export function endWithUs(target: number): () => void {
  if (process.platform === 'win32') return () => {}
  // In a group of its own: a signal to ours is not for it.
  const watch = spawn('sh', ['-c', SCRIPT, 'sh', `${target}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  // The command also runs if there is no `sh`.
  watch.once('error', () => {})
  watch.unref()
  return () => void watch.kill('SIGKILL')
}
