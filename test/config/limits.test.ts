// A limit that the file takes is one that the library takes, and the other way round.

import { expect, test } from 'bun:test'
import { clientLimits, DEFAULT_CLIENT_LIMITS } from '../../src/client/limits.ts'
import { type Fields, optionOf } from '../../src/config/field.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from '../../src/config/schema/fields.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'
import { TunnelServer } from '../../src/tunnel-server.ts'

function limitsOf(fields: Fields): readonly (readonly [option: string, least: number])[] {
  const table = fields.limits?.value
  if (table?.type !== 'table') throw new Error('limits is no table')
  return Object.entries(table.fields).map(([key, field]) => {
    if (!('least' in field.value)) throw new Error(`${key} has no least`)
    return [optionOf(key, field), field.value.least]
  })
}

const takes = (make: () => unknown) => {
  try {
    make()
    return true
  } catch {
    // Refused, whatever the words.
    return false
  }
}

test.each([
  ['client', CLIENT_FIELDS, DEFAULT_CLIENT_LIMITS, (limits: object) => clientLimits(limits)],
  ['server', SERVER_FIELDS, DEFAULT_LIMITS, (limits: object) => new TunnelServer({ limits })],
] as const)('the limits of a %s, and the least of each', (_, fields, defaults, make) => {
  const limits = limitsOf(fields)
  expect(limits.map(([option]) => option)).toEqual(Object.keys(defaults))
  for (const [option, least] of limits) {
    expect([option, takes(() => make({ [option]: 0 }))]).toEqual([option, least === 0])
  }
})
