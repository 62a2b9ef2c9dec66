// A ClientHello with a server name and nothing else of interest (RFC 8446 section 4.1.2, RFC 6066 section 3).

const u16 = (value: number): Buffer => Buffer.from([value >>> 8, value & 0xff])
const counted = (body: Buffer): Buffer => Buffer.concat([u16(body.length), body])

export function clientHello(host: string): Buffer {
  const name = counted(Buffer.concat([Buffer.from([0]), counted(Buffer.from(host))]))
  const extensions = counted(Buffer.concat([u16(0), counted(name)]))
  const hello = Buffer.concat([
    u16(0x0303),
    Buffer.alloc(32, 7),
    Buffer.from([0, 0, 2, 0x13, 1, 1, 0]),
    extensions,
  ])
  const handshake = Buffer.concat([Buffer.from([1, 0]), u16(hello.length), hello])
  return Buffer.concat([Buffer.from([22, 3, 1]), u16(handshake.length), handshake])
}
