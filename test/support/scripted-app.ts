// An app that answers by what the path says, and remembers what it was asked.

import { headerOf } from './exchange.ts'
import { type RawConnection, RawOrigin } from './raw.ts'

const CRLF = '\r\n'

/** Pieces that reach the wire one by one. */
type Pieces = readonly string[]

const plain = (body: string, lines = '') =>
  `HTTP/1.1 200 OK${CRLF}${lines}Content-Length: ${body.length}${CRLF}${CRLF}${body}`

/** What `/name/argument` is answered with; a piece that is `end` or `reset` ends the connection. */
const ANSWERS: Readonly<Record<string, (argument: string, head: string, body: string) => Pieces>> = {
  text: argument => [plain(argument)],
  echo: (_, head, body) => [plain(head + body)],
  size: argument => [plain('x'.repeat(Number(argument)))],
  empty: () => [`HTTP/1.1 204 No Content${CRLF}${CRLF}`],
  /** Half of what it says. */
  half: argument => [plain('x'.repeat(Number(argument))).slice(0, -Number(argument) / 2), 'end'],
  torn: argument => [plain('x'.repeat(Number(argument))).slice(0, -Number(argument) / 2), 'reset'],
  unchanged: () => [`HTTP/1.1 304 Not Modified${CRLF}Content-Length: 77${CRLF}${CRLF}`],
  missing: () => [`HTTP/1.1 404 Not Found${CRLF}Content-Length: 4${CRLF}${CRLF}gone`],
  odd: () => [
    `HTTP/1.1 200${CRLF}Connection: x-secret${CRLF}X-Secret: 1${CRLF}Content-Length: 2${CRLF}${CRLF}ok`,
  ],
  chunked: argument => [
    `HTTP/1.1 200 OK${CRLF}Transfer-Encoding: chunked${CRLF}${CRLF}${argument.length.toString(16)}${CRLF}${argument}${CRLF}0${CRLF}${CRLF}`,
  ],
  'two-heads': argument => [
    `HTTP/1.1 200 OK${CRLF}Content-`,
    `Length: ${argument.length}${CRLF}${CRLF}${argument}`,
  ],
  'two-bodies': argument => [plain(argument).slice(0, -2), argument.slice(-2)],
  'two-chunks': argument => [
    `HTTP/1.1 200 OK${CRLF}Transfer-Encoding: chunked${CRLF}${CRLF}${argument.length.toString(16)}${CRLF}${argument}${CRLF}`,
    `0${CRLF}${CRLF}`,
  ],
  early: argument => [`HTTP/1.1 103 Early Hints${CRLF}Link: </a>${CRLF}${CRLF}${plain(argument)}`],
  hints: argument => [`HTTP/1.1 103 Early Hints${CRLF}Link: </a>${CRLF}${CRLF}`, plain(argument)],
  until: argument => [`HTTP/1.1 200 OK${CRLF}${CRLF}${argument}`, 'end'],
  endless: argument => [`HTTP/1.1 200 OK${CRLF}Content-Length: 1000000${CRLF}${CRLF}${argument}`],
  last: argument => [plain(argument, `Connection: close${CRLF}`), 'end'],
  old: argument => [plain(argument).replace('HTTP/1.1', 'HTTP/1.0'), 'end'],
  quits: argument => [plain(argument), 'end'],
  breaks: argument => [plain(argument), 'reset'],
  wrong: () => [`HTTP/1.1 200 OK${CRLF}Content-Length: 1, 2${CRLF}${CRLF}x`],
  smuggled: () => [
    `HTTP/1.1 200 OK${CRLF}Content-Length: 2${CRLF}Transfer-Encoding: chunked${CRLF}${CRLF}0${CRLF}${CRLF}`,
  ],
  loose: argument => [
    plain(argument, `Content-Length : ${argument.length}${CRLF}X: a${CRLF} b${CRLF}`).replace(CRLF, '\n'),
  ],
  padded: argument => [
    `HTTP/1.1 200 OK${CRLF}Transfer-Encoding: chunked${CRLF}${CRLF}${argument.length.toString(16)}  ${CRLF}${argument}${CRLF}0 ; a${CRLF}${CRLF}`,
  ],
  silent: () => ['end'],
  surplus: () => [`${plain('mine')}${plain('nobody asked')}`],
}

/** Those that end. */
export const ANSWER_NAMES: readonly string[] = Object.keys(ANSWERS).filter(
  name => !['endless', 'silent', 'half', 'torn'].includes(name),
)

export class ScriptedApp implements Disposable {
  readonly #origin = new RawOrigin()
  /** Request lines, in the order they came. */
  readonly asked: string[] = []
  /** How many of those that come next find a connection that closes instead of answering. */
  dropsNext = 0
  /** Before each answer. */
  pause: (() => Promise<void>) | undefined

  constructor() {
    void (async () => {
      for (;;) void this.#serve(await this.#origin.accept())
    })().catch(() => {}) // no more come: the test is over
  }

  get port(): number {
    return this.#origin.port
  }

  get connections(): readonly RawConnection[] {
    return this.#origin.connections
  }

  async #serve(connection: RawConnection): Promise<void> {
    try {
      for (;;) {
        const isAsked = () => connection.text.includes('\r\n\r\n')
        await connection.when(() => isAsked() || connection.hasEnded, 'a request')
        if (!isAsked()) return connection.socket.end()
        const head = await connection.until('\r\n\r\n')
        const body = await connection.exactly(Number(headerOf(head, 'content-length') ?? 0))
        const [line = ''] = head.split('\r\n')
        this.asked.push(line)
        if (this.dropsNext > 0) {
          this.dropsNext--
          return connection.socket.terminate()
        }
        await this.pause?.()
        const [, name = '', argument = ''] = line.split(' ')[1]?.split('/') ?? []
        const pieces = (ANSWERS[name] ?? ANSWERS.missing!)(argument, head, body)
        for (const piece of pieces) {
          if (piece === 'end') return connection.socket.end()
          if (piece === 'reset') return connection.socket.terminate()
          await connection.send(piece)
          // Each piece is a packet of its own.
          if (pieces.length > 1) await Bun.sleep(2)
        }
      }
    } catch {
      // The visitor's side is gone, or waited in vain: the test says so.
      connection.socket.terminate()
    }
  }

  [Symbol.dispose](): void {
    this.#origin[Symbol.dispose]()
  }
}
