// A file is not told that something is missing which is there, nor left in the belief that something is there which is not.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { optionOf } from '../../src/config/field.ts'
import { KINDS_NOT_YET, OPTIONS_NOT_YET } from '../../src/config/not-yet.ts'
import { KINDS, SERVICE_FIELDS } from '../../src/config/schema/client.ts'

const source = (path: string) => Bun.file(join(import.meta.dir, '../../src', path)).text()

test('the kinds that are missing are those that the client has no function for', async () => {
  const client = await source('client/client.ts')
  const kinds = KINDS.filter(kind => kind !== 'folder')
  // When this fails: take the kind out of not-yet.ts.
  expect<readonly string[]>(KINDS_NOT_YET).toEqual(
    kinds.filter(kind => !new RegExp(`\\n  (?:async )?${kind}\\(options`).test(client)),
  )
})

test('the options that are missing are those that its tunnels do not have', async () => {
  const options = await source('client/options.ts')
  // What the file alone has.
  const own = ['kind']
  const names = Object.entries(SERVICE_FIELDS).map(([key, field]) => optionOf(key, field))
  const missing = names.filter(name => !own.includes(name) && !options.includes(`readonly ${name}?: `))
  // `idleTimeoutMs` goes with the kind that has it. When this fails: take the option out of not-yet.ts.
  expect([...OPTIONS_NOT_YET].sort()).toEqual(missing.filter(name => name !== 'idleTimeoutMs').sort())
})
