// What a server answers to a caller that greets it as another server of its cluster would.

import { rawDial } from './raw.ts'

/** Of a raw visitor; others ignore it. */
const WANTED = 'localtunnels-wanted: tcp 1\r\nlocaltunnels-endpoints: 1.2.3.4 5 6.7.8.9 10\r\n'

/** Status 0. */
const CLOSED = 'HTTP/1.1 000 '

/** `proof` `''`: none is shown. `answer`: to the number that the server sends then; without it the first answer is the last. */
export async function greet(
  port: number,
  protocol: string,
  proof: string,
  answer?: (number: string) => string | Promise<string>,
): Promise<{ readonly status: number; readonly number: string | undefined }> {
  const caller = await rawDial(port)
  const head = (shown: string): string =>
    `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${WANTED}${shown === '' ? '' : `Authorization: Peer ${shown}\r\n`}\r\n`
  await caller.send(head(proof))
  let said = await caller.until('\r\n\r\n')
  const number = /^WWW-Authenticate: Peer (.+)\r$/m.exec(said)?.[1]
  if (number !== undefined && answer !== undefined) {
    await caller.send(head(await answer(number)))
    said = await Promise.race([caller.until('\r\n\r\n'), caller.closed().then(() => CLOSED)])
  }
  caller.socket.terminate()
  return { status: Number(said.slice(9, 12)), number }
}
