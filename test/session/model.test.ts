// Random conversations over one carrier, with links beside it and without, against the model.

import { describe, test } from 'bun:test'
import { Conversation } from '../support/conversation.ts'
import { FUZZ } from '../support/random.ts'

describe('streams over a link', () => {
  for (let seed = 0; seed < 20 * FUZZ; seed++) {
    test(`carry what was written, in order, both ways, within credit (seed ${seed})`, () => {
      new Conversation(seed).run(120)
    })
  }
})

describe('streams over a carrier and links, each with bytes of the other overtaken', () => {
  for (let seed = 0; seed < 30 * FUZZ; seed++) {
    test(`carry what was written, to nobody else (seed ${seed})`, () => {
      new Conversation(seed, 1 + (seed % 3)).run(200)
    })
  }
})

describe('streams that are held now and then, as if they were in lanes, over a carrier and links', () => {
  for (let seed = 0; seed < 20 * FUZZ; seed++) {
    test(`carry what was written, in order, both ways, within credit (seed ${seed})`, () => {
      new Conversation(seed, seed % 4, true).run(200)
    })
  }
})
