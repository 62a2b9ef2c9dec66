// A user's command that sets and removes records, for providers without an adapter here.

import { spawn } from 'node:child_process'
import { dnsFailed } from './failed.ts'
import type { DnsProvider, DnsRecord } from './provider.ts'

export interface ExecHookOptions {
  /**
   * The program and its arguments, which no shell reads. `add` or `remove`, the record's name and its text follow.
   * The same values are in the variables `ACME_ACTION`, `ACME_RECORD_NAME` and `ACME_RECORD_VALUE`.
   */
  readonly command: readonly string[]
  /** The time for the command. */
  readonly timeoutMs?: number
  /** The servers that are asked whether a record is visible. Default: those that the zone's NS records name. */
  readonly servers?: readonly string[]
}

/** The number of characters at the end of the command's output that the error contains. */
const MAX_OUTPUT_CHARS = 500

export class ExecHook implements DnsProvider {
  readonly #options: ExecHookOptions
  readonly servers: readonly string[] | undefined

  constructor(options: ExecHookOptions) {
    this.#options = options
    this.servers = options.servers
  }

  add(record: DnsRecord, signal: AbortSignal): Promise<void> {
    return this.#run('add', record, signal)
  }

  remove(record: DnsRecord, signal: AbortSignal): Promise<void> {
    return this.#run('remove', record, signal)
  }

  #run(action: 'add' | 'remove', { name, value }: DnsRecord, signal: AbortSignal): Promise<void> {
    const { command, timeoutMs = 60_000 } = this.#options
    const [program = '', ...args] = command
    return new Promise((resolve, reject) => {
      const env = { ...process.env, ACME_ACTION: action, ACME_RECORD_NAME: name, ACME_RECORD_VALUE: value }
      // Has a group of its own, so that child processes of the command end with it.
      const child = spawn(program, [...args, action, name, value], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      })
      let output = ''
      const read = (data: Buffer | string) => {
        output = (output + data.toString()).slice(-MAX_OUTPUT_CHARS)
      }
      child.stdout.on('data', read)
      child.stderr.on('data', read)
      const kill = () => {
        try {
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
        } catch {
          // The program has already ended.
        }
      }
      const finish = (reason?: string) => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        if (reason === undefined) return resolve()
        const said = output.trim() === '' ? '' : `: ${output}`
        const what = `The command ${program} ${action} ${name} failed`
        reject(signal.aborted ? signal.reason : dnsFailed(what, `${reason}${said}`))
      }
      const abort = () => {
        kill()
        finish('it was ended')
      }
      const timer = setTimeout(() => {
        kill()
        finish(`it took more than ${timeoutMs} ms`)
      }, timeoutMs)
      signal.addEventListener('abort', abort, { once: true })
      child.once('error', error => finish(error.message))
      child.once('exit', (code, killedBy) => {
        if (code === 0) finish()
        // Its last output may still be in the pipe.
        else child.once('close', () => finish(killedBy === null ? `exit code ${code}` : killedBy))
      })
    })
  }
}
