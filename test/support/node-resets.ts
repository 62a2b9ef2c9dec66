// Resets connections dialled in this process and prints how each went that was not told as broken: started with Node.

import { dial } from '../../src/sockets/dial.ts'
import { dialledPairs, mistakenResets } from '../suites/resets.ts'

const [tls, count] = process.argv.slice(2)
console.log(JSON.stringify(await mistakenResets(dialledPairs(dial), tls === 'true', Number(count), 1)))
process.exit()
