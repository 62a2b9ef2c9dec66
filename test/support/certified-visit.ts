// A visitor that verifies the certificate of a name and makes one request.

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { within } from './within.ts'

/**
 * The status, and the names of the certificate that a visitor of `name` gets. Rejects with the alert, or when the certificate does not
 * verify. One that begins in this second may be early by a tick of another clock: that alone is no fault.
 */
export async function certifiedVisit(port: number, name: string, ca: string): Promise<string> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: name,
    ca,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: false,
  })
  await within(once(socket, 'secureConnect'), `a handshake for ${name}`)
  const { authorizationError } = socket
  if (!socket.authorized && !/not.yet.valid/i.test(String(authorizationError)))
    throw new Error(String(authorizationError))
  const { raw } = socket.getPeerCertificate()
  socket.end(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
  const [answer] = await within(once(socket, 'data'), 'an answer')
  socket.destroy()
  return `${String(answer).slice(9, 12)} ${new X509Certificate(raw).subjectAltName}`
}
