// What an error says: what happened, and once what to do.

import { expect, test } from 'bun:test'
import { ERRORS, TunnelError } from '../src/errors.ts'

test('the meaning of the code, or the detail, and then what to do', () => {
  const { meaning, action } = ERRORS.NAME_TAKEN
  expect(new TunnelError('NAME_TAKEN').message).toBe(`${meaning} ${action}`)
  expect(new TunnelError('NAME_TAKEN', 'The name "shop" is taken.').message).toBe(
    `The name "shop" is taken. ${action}`,
  )
})

test('a message that another end sent, which says what to do already, says it once', () => {
  const { message } = new TunnelError('GUARD_UNAVAILABLE', 'The server has no guards.')
  expect(new TunnelError('GUARD_UNAVAILABLE', message).message).toBe(message)
})
