// Serves HTTP/1.1 from a web fetch handler over any two-way byte stream: no socket, no port.

import { ByteBuffer } from '../bytes.ts'
import type { ErrorCode } from '../errors.ts'
import { ascii } from '../http/characters.ts'
import { errorAnswer } from '../http/error-answer.ts'
import type { HeadLimits } from '../http/head.ts'
import { RequestReader } from '../http/message-reader.ts'
import { sendAnswer } from './answer.ts'
import { RequestBody, requestOf, type Scheme } from './request.ts'

/**
 * Responds to a request in this process: the `fetch` of Hono, Elysia or Bun.serve, or a plain function. Returns
 * `undefined` if it upgraded the request.
 */
export type Handler = (request: Request) => Response | undefined | Promise<Response | undefined>

/** Receives the bytes of a connection after its request was upgraded. */
export interface Switched {
  received(bytes: Uint8Array): void
  /** Called when the visitor sends no more. */
  ended(): void
  /** Called when the byte stream is gone in both directions. */
  aborted(): void
  /** Called when the sink takes bytes again. */
  drained(): void
}

/** The writing side of the byte stream. */
export interface HandlerSink {
  /** Takes all of `bytes`, and may keep the array. Returns `false` to ask for no more until `drained`. */
  write(bytes: Uint8Array): boolean
  /** Ends writing; bytes may still arrive. */
  end(): void
  /** Cuts both directions, so that the visitor does not take a partial response for a complete one. */
  terminate(): void
  /** Stops the calls of `received`; `resume` starts them again. */
  pause(): void
  resume(): void
}

export interface HandlerOptions {
  /** The limits of request heads. Default: those of the server. */
  readonly limits?: HeadLimits
  /** The scheme of request URLs. Default `forwarded`: that of X-Forwarded-Proto, otherwise `http`. */
  readonly scheme?: Scheme
  /** The number of request bytes that are stored while an exchange is in progress, before reading stops. Default 65,536. */
  readonly maxPipelinedBytes?: number
  /**
   * Called with the handler's error, or why its response could not be sent, and with the request as `GET /path`.
   * `terminate` of the sink follows, so the caller makes the page for the visitor.
   */
  readonly failed?: (error: unknown, request: string) => void
  /** Called before the handler, if the request asks for a WebSocket. */
  readonly offers?: (request: Request) => void
  /**
   * Called after the handler responded to such a request. Returns the receiver of the connection's further bytes
   * after the response to the upgrade; `undefined` to send the handler's response.
   */
  readonly upgraded?: (request: Request, sink: HandlerSink) => Switched | undefined
}

const DEFAULT_LIMITS: HeadLimits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }

/** The maximum number of unread request bytes that are read and dropped after a response, before the connection is closed. */
const MAX_DROPPED_BYTES = 262_144

const CONTINUE = ascii('HTTP/1.1 100 Continue\r\n\r\n')

interface Exchange {
  readonly body: RequestBody | undefined
  readonly abort: AbortController
  /** Whether 100 (Continue) is sent as soon as the handler reads. */
  owesContinue: boolean
  /** Whether bytes of the response were sent. */
  isStarted: boolean
  isAnswered: boolean
  droppedBytes: number
}

/** A visitor's connection. Its owner passes on the events of the byte stream. */
export class HandlerConnection {
  readonly #handler: Handler
  readonly #sink: HandlerSink
  readonly #options: HandlerOptions
  readonly #reader = new RequestReader((bytes, start, end) => this.#takeBody(bytes.subarray(start, end)))
  /** Requests that arrived before the response to an earlier one. */
  readonly #backlog = new ByteBuffer()
  #exchange: Exchange | undefined
  #switched: Switched | undefined
  /** Whether the visitor sent FIN. */
  #isEnded = false
  #isClosed = false
  #isPaused = false
  #isFull = false
  #waiting: { resolve(): void; reject(error: Error): void } | undefined

  constructor(handler: Handler, sink: HandlerSink, options: HandlerOptions = {}) {
    this.#handler = handler
    this.#sink = sink
    this.#options = options
  }

  /** Takes bytes from the visitor. The connection may keep the array. */
  received(bytes: Uint8Array): void {
    if (this.#isClosed || bytes.length === 0) return
    if (this.#switched !== undefined) return this.#switched.received(bytes)
    this.#advance(bytes)
  }

  /** Called when the visitor sends no more. It may still read. */
  ended(): void {
    if (this.#isClosed || this.#isEnded) return
    this.#isEnded = true
    if (this.#switched !== undefined) return this.#switched.ended()
    const exchange = this.#exchange
    if (exchange === undefined) this.#end()
    // An incomplete request gets no response, because nothing shows that it was meant.
    else if (!this.#reader.isComplete) this.#cut(new Error('the request body ended early'))
  }

  /** Called when the sink takes bytes again. */
  drained(): void {
    if (this.#switched !== undefined) return this.#switched.drained()
    this.#isFull = false
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve()
  }

  /** Called when the byte stream is gone in both directions. */
  aborted(): void {
    this.#switched?.aborted()
    this.#close(new Error('the visitor left'))
  }

  /** Handles bytes: a body, heads, or both. */
  #advance(bytes: Uint8Array): void {
    const reader = this.#reader
    let at = 0
    while (at < bytes.length && !this.#isClosed) {
      const exchange = this.#exchange
      if (exchange !== undefined && reader.isComplete) {
        // The next request waits for the response to this one.
        this.#backlog.adopt(bytes, at, bytes.length)
        if (this.#backlog.length > (this.#options.maxPipelinedBytes ?? 65_536)) this.#pause()
        return
      }
      if (exchange !== undefined) {
        at = reader.body.feed(bytes, at, bytes.length)
        if (at < 0) return this.#refuseBody(exchange)
        if (!reader.isComplete || this.#isClosed) return
        exchange.body?.close()
        if (exchange.isAnswered) this.#finish(true)
        continue
      }
      at = reader.readHead(bytes, at, bytes.length, this.#options.limits ?? DEFAULT_LIMITS)
      if (at < 0) return this.#refuse(reader.head.refusal)
      if (at === 0) return this.#isEnded ? this.#end() : undefined
      this.#begin()
    }
  }

  #refuseBody(exchange: Exchange): void {
    if (exchange.isStarted) this.#cut(new Error('the request body is malformed'))
    else this.#refuse('BAD_REQUEST')
  }

  #takeBody(bytes: Uint8Array): void {
    const exchange = this.#exchange!
    exchange.owesContinue = false
    if (!exchange.isAnswered) {
      exchange.body?.push(bytes)
      return
    }
    exchange.droppedBytes += bytes.length
    if (exchange.droppedBytes > MAX_DROPPED_BYTES)
      this.#cut(new Error('too much request body behind the answer'))
  }

  #begin(): void {
    const { head } = this.#reader
    const exchange: Exchange = {
      body: head.body === 'none' ? undefined : this.#makeBody(),
      abort: new AbortController(),
      owesContinue: head.expectsContinue && head.body !== 'none',
      isStarted: false,
      isAnswered: false,
      droppedBytes: 0,
    }
    this.#exchange = exchange
    const { signal } = exchange.abort
    const request = requestOf(head, this.#options.scheme ?? 'forwarded', exchange.body?.stream, signal)
    // The head is read now, because its bytes may be gone when the response comes.
    const to = { method: head.method, minorVersion: head.minorVersion, keepAlive: head.keepAlive }
    if (request === undefined) return this.#refuse('METHOD_REFUSED', `${head.method} cannot be served here.`)
    const mayUpgrade = head.upgrade === 'websocket' && this.#options.upgraded !== undefined
    if (mayUpgrade) this.#options.offers?.(request)
    void this.#answer(exchange, request, { ...to, mayUpgrade })
  }

  #makeBody(): RequestBody {
    return new RequestBody({
      wanted: () => {
        if (this.#exchange?.owesContinue === true && !this.#isClosed) {
          this.#exchange.owesContinue = false
          this.#write(CONTINUE)
        }
        this.#resume()
      },
      satisfied: () => this.#pause(),
    })
  }

  async #answer(
    exchange: Exchange,
    request: Request,
    to: {
      readonly method: string
      readonly minorVersion: 0 | 1
      readonly keepAlive: boolean
      readonly mayUpgrade: boolean
    },
  ): Promise<void> {
    try {
      const response = await this.#handler(request)
      if (this.#isClosed) {
        await response?.body?.cancel()
        return
      }
      if (to.mayUpgrade && this.#switch(request)) return
      if (response === undefined) throw new TypeError('the handler answered nothing')
      // A visitor that waits for 100 (Continue) may or may not send its body, so it is not known what comes next.
      const keepAlive = to.keepAlive && !exchange.owesContinue && this.#unreadBytes() <= MAX_DROPPED_BYTES
      exchange.owesContinue = false
      const goesOn = await sendAnswer(response, { ...to, keepAlive }, bytes => {
        exchange.isStarted = true
        return this.#send(bytes)
      })
      if (!this.#isClosed) this.#answered(exchange, goesOn)
    } catch (error) {
      if (this.#isClosed) return
      // Reports only the path, because the query may contain secrets.
      this.#options.failed?.(error, `${to.method} ${new URL(request.url).pathname}`)
      this.#cut(new Error('the answer failed', { cause: error }))
    }
  }

  /** Passes the connection to another protocol, if the handler upgraded the request. */
  #switch(request: Request): boolean {
    const switched = this.#options.upgraded?.(request, this.#sink)
    if (switched === undefined) return false
    this.#switched = switched
    this.#exchange = undefined
    const behind = this.#backlog.take()
    if (behind !== undefined) switched.received(behind)
    this.#resume()
    if (this.#isEnded) switched.ended()
    return true
  }

  #answered(exchange: Exchange, goesOn: boolean): void {
    exchange.isAnswered = true
    exchange.body?.fail(new Error('the request was answered before its body was read'))
    if (!goesOn) this.#finish(false)
    else if (this.#reader.isComplete) {
      this.#finish(true)
      const next = this.#backlog.take()
      if (next !== undefined) this.#advance(next)
    } else this.#resume()
  }

  /** The number of bytes of the body that are known to be still missing. */
  #unreadBytes(): number {
    return this.#reader.body.leftBytes
  }

  /** Ends the exchange in good order. */
  #finish(goesOn: boolean): void {
    this.#exchange = undefined
    if (!goesOn || (this.#isEnded && this.#backlog.isEmpty)) return this.#end()
    this.#resume()
  }

  #refuse(code: ErrorCode, detail?: string): void {
    const { head } = this.#reader
    const page = { head: head.method === 'HEAD', keepAlive: false, host: head.host }
    this.#write(errorAnswer(code, detail === undefined ? page : { ...page, detail }))
    this.#end(new Error('the request was refused'))
  }

  /** Ends the connection in good order. Further bytes of the visitor are dropped. */
  #end(reason = new Error('the connection ended')): void {
    if (this.#isClosed) return
    this.#close(reason)
    // Reading continues so that the visitor can finish. A paused stream would never report its FIN.
    this.#isPaused = false
    this.#sink.resume()
    this.#sink.end()
  }

  #cut(error: Error): void {
    if (this.#isClosed) return
    this.#close(error)
    this.#sink.terminate()
  }

  #close(error: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#backlog.clear()
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.body?.fail(error)
    exchange?.abort.abort(error)
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(error)
  }

  #write(bytes: Uint8Array): void {
    if (!this.#sink.write(bytes)) this.#isFull = true
  }

  /** Sends bytes. Returns `undefined` if more may be sent at once, so that a fast visitor costs no promise. */
  #send(bytes: Uint8Array): Promise<void> | undefined {
    if (this.#isClosed) throw new Error('the visitor left')
    this.#write(bytes)
    if (!this.#isFull) return undefined
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  #pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#sink.pause()
  }

  #resume(): void {
    if (!this.#isPaused || this.#isClosed) return
    this.#isPaused = false
    this.#sink.resume()
  }
}
