// A supervisor that listens as systemd does: a unix datagram socket whose path is in NOTIFY_SOCKET, in Python, because Bun and Node
// have no such sockets.

import { eventually } from './events.ts'
import { folder } from './programs.ts'

const LISTENER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1] if sys.argv[1][0] != '@' else chr(0) + sys.argv[1][1:])
print('bound')
while True: print(s.recv(4096).decode().rstrip())
`

export class Supervisor implements AsyncDisposable {
  /** For the program that it supervises. */
  readonly env: Readonly<Record<string, string>>
  #text = ''
  readonly #end: () => Promise<void>

  private constructor(
    path: string,
    listener: Bun.Subprocess<'ignore', 'pipe', 'inherit'>,
    end: () => Promise<void>,
  ) {
    this.env = { NOTIFY_SOCKET: path }
    this.#end = end
    void (async () => {
      for await (const bytes of listener.stdout) this.#text += Buffer.from(bytes).toString()
    })()
  }

  /** `name`: an abstract one, such as `@name`. Default: a socket in a folder of its own. */
  static async start(name?: string): Promise<Supervisor> {
    const dir = await folder('supervisor')
    const path = name ?? `${dir.path}/notify`
    const listener = Bun.spawn(['python3', '-uc', LISTENER, path], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const supervisor = new Supervisor(path, listener, async () => {
      listener.kill('SIGKILL')
      await listener.exited
      await dir[Symbol.asyncDispose]()
    })
    await supervisor.heard('bound\n')
    return supervisor
  }

  get lines(): readonly string[] {
    return this.#text.trimEnd().split('\n').slice(1)
  }

  /** Resolves once it has heard this text. */
  heard(text: string): Promise<void> {
    return eventually(
      () => this.#text.includes(text),
      `${JSON.stringify(text)} in ${JSON.stringify(this.#text)}`,
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end()
  }
}
