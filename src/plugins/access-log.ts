// An observer that writes one JSON line for each visit, to a file that is rotated or to stdout. It never makes a visitor wait.

import { optionInvalid } from '../errors.ts'
import type { ForTunnels, LineObserver, Observer } from '../plugin.ts'
import { accessLine, middleOf } from './access-line.ts'
import { LineWriter } from './line-writer.ts'

export interface AccessLogOptions extends ForTunnels {
  /** The path of the file, which others cannot read (mode 0600). Default: stdout. */
  readonly file?: string
  /**
   * The share of the visits that have a line, from 0 to 1; failed and refused visits, and those with a status of 500 or above,
   * always have one. Default 1. Outside: `OPTION_INVALID`.
   */
  readonly sample?: number
  /** Whether lines have the query of the target, which may hold secrets of the app's users. Default `false`: the path alone. */
  readonly query?: boolean
  /**
   * The size at which the file is renamed to `file.1`, that one to `file.2`, and so on. Bytes. Default 100 MiB. `0`: never. A pipe
   * or device is never renamed.
   */
  readonly maxFileBytes?: number
  /** The number of renamed files that stay. Default 5. `0`: the file begins again. */
  readonly maxFiles?: number
  /** Number of this process among those of one server, as the field `worker`: each counts its own `id`. Default: no such field. */
  readonly worker?: number
  /**
   * The bytes of lines that may wait for a slow disk or pipe. Default 4 MiB. If exceeded: they are dropped, and a
   * line says how many.
   */
  readonly maxQueuedBytes?: number
}

/** An observer for `observers`; its owner closes it after `server.stop()`. */
export interface AccessLog extends Observer {
  /** Lines that were dropped so far. */
  readonly droppedLines: number
  /** Writes the waiting lines, for up to two seconds, and closes the file. */
  close(): Promise<void>
}

/**
 * Writes one JSON line for each request, upgrade, TCP and TLS connection that has ended: `time`, `id`, `kind`, `tunnel`,
 * `client`, `token` (its name), `address`, `method`, `host`, `path`, `status`, `ms` with its parts `waitMs`, `appMs` and
 * `transferMs`, `requestBytes`, `responseBytes`, `code`, `reason`. Never a header, a body or a secret of the server. Throws
 * `OPTION_INVALID` for options that cannot be used, and for a file that cannot be opened.
 */
export function accessLog(options: AccessLogOptions = {}): AccessLog {
  const {
    file,
    tunnels,
    sample = 1,
    query = false,
    maxFileBytes = 104_857_600,
    maxFiles = 5,
    maxQueuedBytes = 4_194_304,
    worker,
  } = options
  const by = worker === undefined ? '' : `,"worker":${worker}`
  if (!(sample >= 0 && sample <= 1)) throw optionInvalid(`sample must be from 0 to 1, not ${sample}.`)
  for (const [name, value] of Object.entries({ maxFileBytes, maxFiles, maxQueuedBytes }))
    if (!(Number.isSafeInteger(value) && value >= 0))
      throw optionInvalid(`${name} must be a whole number from 0, not ${value}.`)
  const writer = new LineWriter({ file, maxFileBytes, maxFiles, maxQueuedBytes })
  const write = (lines: string | Uint8Array, count: number) => {
    writer.write(lines, count)
    // An observer that throws is reported, so that the operator learns of a full disk.
    const { fault } = writer
    if (fault !== undefined) throw fault
  }
  const log: AccessLog & LineObserver = {
    name: 'access log',
    ...(tunnels && { tunnels }),
    get droppedLines() {
      return writer.droppedLines
    },
    ended(seen, outcome) {
      const hasFailed = outcome.code !== undefined || outcome.status >= 500
      if (!hasFailed && sample < 1 && Math.random() >= sample) return
      write(accessLine(seen, outcome, query, by), 1)
    },
    accessLines: {
      isOf: observer => observer === log,
      of: (visited, served) => ({ sample, query, middle: Buffer.from(by + middleOf(visited, served)) }),
      write,
    },
    close: () => writer.close(),
  }
  return log
}
