// An app behind Windows authentication, as IIS does it: a handshake logs the connection in, and later requests on it need nothing.

interface State {
  text: string
  isChallenged: boolean
  user: string
}

export interface LoginApp extends Disposable {
  readonly port: number
  /** Connections that are open. */
  readonly open: number
}

/** `offers`: the schemes of its challenge, one line each. */
export function startLoginApp(offers: readonly string[] = ['NTLM']): LoginApp {
  let open = 0
  const app = Bun.listen<State>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(socket) {
        open++
        socket.data = { text: '', isChallenged: false, user: '' }
      },
      close() {
        open--
      },
      data(socket, bytes) {
        const state = socket.data
        state.text += bytes.toString('latin1')
        for (;;) {
          const headEnd = state.text.indexOf('\r\n\r\n') + 4
          const head = state.text.slice(0, headEnd)
          const [, length = '0'] = /^content-length: (\d+)\r$/im.exec(head) ?? []
          const end = headEnd + Number(length)
          if (headEnd < 4 || state.text.length < end) return
          state.text = state.text.slice(end)
          socket.write(answerTo(head, state))
        }
      },
    },
  })
  const answerTo = (head: string, state: State): string => {
    const [, scheme = '', token = ''] = /^authorization: (\S+) (\S+)\r$/im.exec(head) ?? []
    if (/^basic$/i.test(scheme)) return hello('basic', '')
    if (/^(?:ntlm|negotiate)$/i.test(scheme)) {
      const message = Buffer.from(token, 'base64')
      state.user = ''
      if (message[8] === 1) {
        state.isChallenged = true
        return refused([`${scheme} ${CHALLENGE}`])
      }
      if (!state.isChallenged) return refused(offers)
      state.isChallenged = false
      state.user = userIn(message)
    }
    return state.user === '' ? refused(offers) : hello(state.user, '')
  }
  return {
    port: app.port,
    get open() {
      return open
    },
    [Symbol.dispose]: () => app.stop(true),
  }
}

function hello(user: string, lines: string): string {
  const body = `hello ${user}`
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${lines}\r\n${body}`
}

function refused(offers: readonly string[]): string {
  const lines = offers.map(offer => `WWW-Authenticate: ${offer}\r\n`).join('')
  return `HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n${lines}\r\nno`
}

/** The first message of the client, and the one behind the challenge, as far as this app reads them. */
export const FIRST: string = Buffer.from('NTLMSSP\0\x01\0\0\0\x07\x82\x08\0', 'latin1').toString('base64')
export function secondOf(user: string): string {
  const name = Buffer.from(user, 'utf16le')
  const message = Buffer.alloc(64 + name.length)
  message.write('NTLMSSP\0\x03', 'latin1')
  message.writeUInt16LE(name.length, 36)
  message.writeUInt32LE(64, 40)
  message.writeUInt32LE(1, 60)
  name.copy(message, 64)
  return message.toString('base64')
}

/** MS-NLMP 2.2.1.2: no target name, and flags for Unicode and NTLM. */
const CHALLENGE = (() => {
  const message = Buffer.alloc(48)
  message.write('NTLMSSP\0\x02', 'latin1')
  message.writeUInt32LE(48, 16)
  message.writeUInt32LE(0x00_00_82_01, 20)
  message.write('nonsense', 24, 'latin1')
  message.writeUInt32LE(48, 44)
  return message.toString('base64')
})()

function userIn(message: Buffer): string {
  const at = message.readUInt32LE(40)
  const bytes = message.subarray(at, at + message.readUInt16LE(36))
  const isUnicode = (message.readUInt32LE(60) & 1) === 1
  return bytes.toString(isUnicode ? 'utf16le' : 'latin1')
}
