// UDP sockets keep the contract on Bun; in Node they do so in node.test.ts.

import { describe, test } from 'bun:test'
import { associate } from '../../src/sockets/associate.ts'
import { datagramCases } from '../suites/datagrams.ts'

describe('a UDP socket of Bun', () => {
  for (const { name, run } of datagramCases(associate)) test(name, run)
})
