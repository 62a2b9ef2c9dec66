// Every key of a service is an option of the client's tunnels, and every kind one of its functions.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { optionOf } from '../../src/config/field.ts'
import { SERVICE_FIELDS } from '../../src/config/schema/fields.ts'

const source = (path: string) => Bun.file(join(import.meta.dir, '../../src', path)).text()

test('each kind of service is a function of the client', async () => {
  const client = await source('client/client.ts')
  const { value } = SERVICE_FIELDS.kind!
  const kinds = 'choices' in value ? value.choices : []
  const functions = `${client}${await source('tunnel-client.ts')}`
  expect(
    kinds.filter(kind => !new RegExp(`\\n  (?:async )?${kind}(?:To)?\\(options`).test(functions)),
  ).toEqual(['folder'])
})

test('each key of a service is an option of a tunnel', async () => {
  const options = await source('client/options.ts')
  const names = Object.entries(SERVICE_FIELDS).map(([key, field]) => optionOf(key, field))
  expect(names.filter(name => !new RegExp(`readonly ${name}\\??: `).test(options))).toEqual([])
})
