// Writes lines to a file or stdout in the background: collects them during a write, and drops them if too many wait.

import { close, closeSync, fstatSync, openSync, realpathSync, renameSync, rmSync, write } from 'node:fs'
import { messageOf, optionInvalid } from '../errors.ts'
import { LF } from '../http/characters.ts'

export interface LineWriterOptions {
  /** The path of the file. `undefined` for stdout. */
  readonly file: string | undefined
  readonly maxFileBytes: number
  readonly maxFiles: number
  readonly maxQueuedBytes: number
}

const STDOUT = 1
/** The time in milliseconds after which a full pipe is tried again. */
const AGAIN_MS = 20
/** The time in milliseconds for which lines wait for others after a write, because each write wakes two threads. */
const GATHER_MS = 20
/** The time in milliseconds for the last lines. A full pipe may never be read. */
const CLOSE_MS = 2_000
/** The number of bytes that are written without a wait for more. */
const FULL_BYTES = 65_536

export class LineWriter {
  droppedLines = 0
  readonly #options: LineWriterOptions
  #descriptor: number
  /** The file that is renamed. `undefined`: nothing is, since `/dev/null`, a terminal and a pipe are not the log's. */
  #path: string | undefined
  #fileBytes = 0
  #queue: (string | Uint8Array)[] = []
  #queuedBytes = 0
  #queuedLines = 0
  /** The number of lines dropped since the last line that reported it. */
  #unsaid = 0
  /** The number of dropped lines that the last line of the current write reports. */
  #saying = 0
  /** Whether the disk was full in the middle of a line. */
  #isCut = false
  #isWriting = false
  /** The next write, which waits for more lines. */
  #planned: ReturnType<typeof setTimeout> | undefined
  #writtenAt = Number.NEGATIVE_INFINITY
  #isClosed = false
  #hasGivenUp = false
  #fault: Error | undefined
  #closed: Promise<void> | undefined
  /** Ends the wait of `close`. */
  #over: (() => void) | undefined

  /** Makes the writer. Throws `OPTION_INVALID` for a file that cannot be opened. */
  constructor(options: LineWriterOptions) {
    this.#options = options
    this.#descriptor = this.#open()
  }

  /** The fault since the last call. */
  get fault(): Error | undefined {
    const fault = this.#fault
    this.#fault = undefined
    return fault
  }

  /** Writes `count` whole lines, or drops them. */
  write(lines: string | Uint8Array, count: number): void {
    if (this.#isClosed) return
    if (this.#queuedBytes + lines.length > this.#options.maxQueuedBytes) {
      this.droppedLines += count
      this.#unsaid += count
      return
    }
    this.#queue.push(lines)
    this.#queuedBytes += lines.length
    this.#queuedLines += count
    if (this.#isWriting) return
    if (this.#queuedBytes >= FULL_BYTES) return this.#writeQueue()
    this.#plan()
  }

  #plan(): void {
    if (this.#planned !== undefined) return
    // One write contains at least all lines of this turn.
    const waitMs = Math.max(0, this.#writtenAt + GATHER_MS - performance.now())
    this.#planned = setTimeout(() => this.#writeQueue(), waitMs)
  }

  /** Resolves once everything is written, or after `CLOSE_MS`, when the rest is lost. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#over = resolve
    const timer = setTimeout(() => this.#giveUp(), CLOSE_MS)
    if (!this.#isWriting) this.#writeQueue()
    await promise
    clearTimeout(timer)
  }

  #giveUp(): void {
    this.droppedLines += this.#queuedLines
    this.#queue = []
    this.#hasGivenUp = true
    this.#over?.()
  }

  #end(): void {
    if (!this.#isClosed) return
    if (this.#options.file === undefined) return this.#over?.()
    close(this.#descriptor, () => this.#over?.())
  }

  #writeQueue(): void {
    clearTimeout(this.#planned)
    this.#planned = undefined
    if (this.#queue.length === 0) return this.#end()
    if (this.#unsaid > 0) this.#queue.push(`{"dropped":${this.#unsaid}}\n`)
    if (this.#isCut) this.#queue.unshift('\n')
    this.#saying = this.#unsaid
    this.#unsaid = 0
    const bytes = bytesOf(this.#queue)
    this.#queue = []
    this.#queuedBytes = this.#queuedLines = 0
    this.#isWriting = true
    this.#writeFrom(bytes, 0, 0)
  }

  /** Writes lines up to `end` into the current file. Lines from `from` on may go into the next file. */
  #writeFrom(bytes: Uint8Array, from: number, end: number): void {
    if (from === bytes.length) return this.#next()
    const to = from < end ? end : this.#rotateFor(bytes, from)
    write(this.#descriptor, bytes, from, to - from, null, (error, count) => {
      if (error?.code === 'EAGAIN' && !this.#hasGivenUp) {
        setTimeout(() => this.#writeFrom(bytes, from, to), AGAIN_MS)
        return
      }
      if (error !== null) {
        this.#failed(error)
        this.#lose(bytes, from)
        return this.#next()
      }
      this.#isCut = false
      this.#fileBytes += count
      this.#writeFrom(bytes, from + count, to)
    })
  }

  #lose(bytes: Uint8Array, from: number): void {
    let lines = 0
    for (let at = from; at < bytes.length; at++) if (bytes[at] === LF) lines++
    if (from > 0) this.#isCut = bytes[from - 1] !== LF
    // Neither the last line belongs to a visitor, nor the first, which ends a truncated one.
    else if (this.#isCut) lines--
    if (this.#saying > 0) lines--
    this.droppedLines += lines
    this.#unsaid += lines + this.#saying
  }

  #next(): void {
    this.#isWriting = false
    this.#writtenAt = performance.now()
    if (this.#isClosed || this.#queuedBytes >= FULL_BYTES) this.#writeQueue()
    else if (this.#queue.length > 0) this.#plan()
  }

  #failed(cause: unknown): void {
    this.#fault = new Error(`lines were lost: ${messageOf(cause)}`, { cause })
  }

  /** Begins the next file if the line at `from` does not fit. Returns the end of the lines that fit, at least one. */
  #rotateFor(bytes: Uint8Array, from: number): number {
    const { maxFileBytes } = this.#options
    if (this.#path === undefined || maxFileBytes === 0) return bytes.length
    const lineEnd = bytes.indexOf(LF, from) + 1
    try {
      if (this.#fileBytes > 0 && this.#fileBytes + lineEnd - from > maxFileBytes) this.#rotate(this.#path)
    } catch (cause) {
      this.#failed(cause)
      return bytes.length
    }
    const fitting = from + maxFileBytes - this.#fileBytes
    return fitting >= bytes.length
      ? bytes.length
      : Math.max(lineEnd, bytes.lastIndexOf(LF, Math.max(fitting - 1, 0)) + 1)
  }

  #rotate(file: string): void {
    const { maxFiles } = this.#options
    for (let number = maxFiles; number > 0; number--)
      moveIfThere(number === 1 ? file : `${file}.${number - 1}`, `${file}.${number}`)
    if (maxFiles === 0) rmSync(file, { force: true })
    const before = this.#descriptor
    this.#descriptor = this.#open()
    closeSync(before)
  }

  #open(): number {
    const { file } = this.#options
    if (file === undefined) return STDOUT
    try {
      const descriptor = openSync(this.#path ?? file, 'a', 0o600)
      const opened = fstatSync(descriptor)
      this.#fileBytes = opened.size
      // Links stay: /dev/stdout is one.
      this.#path = opened.isFile() ? realpathSync(this.#path ?? file) : undefined
      return descriptor
    } catch (cause) {
      throw optionInvalid(`The access log ${file} cannot be opened: ${messageOf(cause)}.`, {
        cause,
      })
    }
  }
}

function bytesOf(pieces: readonly (string | Uint8Array)[]): Uint8Array {
  const all: Uint8Array[] = []
  let text = ''
  for (const piece of pieces)
    if (typeof piece === 'string') text += piece
    else {
      all.push(Buffer.from(text), piece)
      text = ''
    }
  all.push(Buffer.from(text))
  return Buffer.concat(all)
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
