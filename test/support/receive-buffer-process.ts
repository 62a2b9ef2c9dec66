// Prints what the kernel has for a connection whose receive buffer was bounded.

import { descriptorOf } from '../../src/sockets/descriptor.ts'
import { boundReceiving } from '../../src/sockets/receive-buffer.ts'
import { receiveBytes } from './receive-buffer.ts'

const listening = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
const socket = await Bun.connect({ hostname: '127.0.0.1', port: listening.port, socket: { data() {} } })
const descriptor = descriptorOf(socket)!
boundReceiving(descriptor)
console.log(receiveBytes(descriptor))
process.exit()
