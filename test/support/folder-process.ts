// A client that serves a folder, for Node. Prints a line once it is connected.

import { TunnelClient } from '../../src/client.ts'

const [server = '', folder = '', spa = ''] = process.argv.slice(2)
const client = new TunnelClient({ server, folder, spa: spa === 'true', subdomain: 'app' })
await client.connect()
console.log(client.getTunnelUrl())
