// Checks an origin regularly, and reports when its health changes.

import { TunnelError } from '../../errors.ts'
import { ResponseReader } from '../../http/message-reader.ts'
import type { Scheduler } from '../../session/scheduler.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Origin } from '../origins/origin.ts'

export interface HealthSettings {
  readonly kind: 'tcp' | 'http'
  readonly path: string
  readonly host: string
  readonly isHttp2?: boolean
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly healthyAfter: number
  readonly unhealthyAfter: number
}

/** The request and the response reader of one `http` check. */
export interface HealthProbe {
  readonly bytes: Uint8Array
  /** Reads the next bytes of the app. Returns the status of the final response; 0 before it came; -1 if it is invalid. */
  read(piece: Uint8Array): number
  readonly fault: string
}

/** Makes a probe. `head`: the request as HTTP/1.1 text. `isSecure`: it uses TLS. */
export type Probing = (head: string, isSecure: boolean) => HealthProbe

/** Called when the verdict changes; `error` says why the origin is unhealthy. */
export type HealthChanged = (isHealthy: boolean, error?: TunnelError) => void

/** The limits of the response head. The rest of the response is not read. */
const HEAD_LIMITS = { maxHeadBytes: 65_536, maxHeaderCount: 200, isOption: false }

export class HealthCheck {
  /** Whether the origin is healthy. True until a check fails. */
  isHealthy = true
  readonly #origin: Origin
  readonly #settings: HealthSettings
  readonly #scheduler: Scheduler
  readonly #changed: HealthChanged
  /** The number of checks in a row whose result differs from `isHealthy`. */
  #against = 0
  /** Whether the next check is the first, which alone decides: an app that is down at the start should get no visitors. */
  #isFirst = true
  #stop: (() => void) | undefined
  readonly #loadHttp2: (() => Promise<Probing>) | undefined
  #probeHttp2: Probing | undefined

  /** Makes a check. `loadHttp2`: for an app that speaks HTTP/2. */
  constructor(
    origin: Origin,
    settings: HealthSettings,
    scheduler: Scheduler,
    changed: HealthChanged,
    loadHttp2?: () => Promise<Probing>,
  ) {
    this.#loadHttp2 = loadHttp2
    this.#origin = origin
    this.#settings = settings
    this.#scheduler = scheduler
    this.#changed = changed
  }

  /** Checks at once, and then regularly. */
  start(): void {
    if (this.#stop === undefined) this.#ask()
  }

  /** Stops the checks. After another `start`, the first check alone decides again. */
  stop(): void {
    this.#stop?.()
    this.#stop = undefined
    this.#against = 0
    this.#isFirst = true
  }

  #ask(): void {
    const { intervalMs } = this.#settings
    const { kind, isHttp2 } = this.#settings
    if (kind === 'http' && isHttp2 === true && this.#probeHttp2 === undefined) return this.#load()
    this.#stop = ask(this.#origin, this.#settings, this.#probeHttp2 ?? probe, this.#scheduler, error => {
      // One check at a time, so that a slow app does not get more and more of them.
      this.#stop = this.#scheduler.after(intervalMs, () => this.#ask())
      this.#judge(error)
    })
  }

  /** Loads the HTTP/2 check, which most clients do not need. */
  #load(): void {
    let isStopped = false
    this.#stop = () => {
      isStopped = true
    }
    void this.#loadHttp2?.().then(probeHttp2 => {
      this.#probeHttp2 = probeHttp2
      if (!isStopped) this.#ask()
    })
  }

  #judge(error: TunnelError | undefined): void {
    const wasWell = error === undefined
    const isFirst = this.#isFirst
    this.#isFirst = false
    if (wasWell === this.isHealthy) {
      this.#against = 0
      return
    }
    const { healthyAfter, unhealthyAfter } = this.#settings
    this.#against++
    if (!isFirst && this.#against < (wasWell ? healthyAfter : unhealthyAfter)) return
    this.#against = 0
    this.isHealthy = wasWell
    this.#changed(wasWell, error)
  }
}

/** Makes one check. `done` is called once, unless the returned function is called first. */
function ask(
  origin: Origin,
  { kind, path, host, timeoutMs }: HealthSettings,
  probing: Probing,
  scheduler: Scheduler,
  done: (error?: TunnelError) => void,
): () => void {
  let socket: Socket | undefined
  let isOver = false
  const head = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: localtunnels\r\nConnection: close\r\n\r\n`
  const asking = probing(head, origin.url.startsWith('https:'))
  let unsent = asking.bytes
  const stop = () => {
    isOver = true
    cancel()
    socket?.terminate()
  }
  const finish = (error?: TunnelError) => {
    if (isOver) return
    stop()
    done(error)
  }
  const cancel = scheduler.after(timeoutMs, () => finish(new TunnelError('ORIGIN_TIMEOUT')))
  const send = () => {
    if (socket !== undefined && !isOver) unsent = unsent.subarray(socket.write(unsent))
  }
  const handler: SocketHandler = {
    received(bytes) {
      if (isOver || kind === 'tcp') return
      const status = asking.read(bytes)
      if (status === 0) return
      if (status >= 200 && status < 400) return finish()
      if (status > 0)
        return finish(new TunnelError('ORIGIN_UNHEALTHY', `GET ${path} was answered ${status}.`))
      finish(new TunnelError('ORIGIN_INVALID', `The answer to GET ${path} is not valid: ${asking.fault}.`))
    },
    drained: send,
    ended: () => finish(new TunnelError('ORIGIN_CLOSED')),
    closed: () => finish(new TunnelError('ORIGIN_CLOSED')),
  }
  origin.connect(handler).then(
    connected => {
      socket = connected
      if (isOver) return connected.terminate()
      if (kind === 'tcp') finish()
      else send()
    },
    (cause: unknown) =>
      finish(
        cause instanceof TunnelError ? cause : new TunnelError('ORIGIN_UNREACHABLE', undefined, { cause }),
      ),
  )
  return stop
}

/** Makes the probe of an HTTP/1.1 app. */
function probe(head: string, _isSecure: boolean): HealthProbe {
  const answer = new ResponseReader(true)
  return {
    bytes: Buffer.from(head),
    get fault() {
      return answer.head.fault
    },
    read(piece) {
      for (let at = 0; ; ) {
        at = answer.readHead(piece, at, piece.length, HEAD_LIMITS, 'GET')
        if (at <= 0) return at
        if (answer.head.status >= 200) return answer.head.status
      }
    },
  }
}
