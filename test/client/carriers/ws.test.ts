// Carriers over the ws package.

import { describe } from 'bun:test'
import { wsCarriers } from '../../../src/client/carriers/ws.ts'
import { carrierSuite } from '../../suites/carrier.ts'

describe('a carrier over ws', () => carrierSuite(wsCarriers()))
