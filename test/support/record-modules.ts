// Preloaded by a test: writes the path of each module of ours that a program loads to the file that LOADED names.

import { appendFileSync, readFileSync } from 'node:fs'
import { plugin } from 'bun'

const { LOADED = '' } = process.env

plugin({
  name: 'record-modules',
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      appendFileSync(LOADED, `${path}\n`)
      return { contents: readFileSync(path, 'utf8'), loader: path.endsWith('.ts') ? 'ts' : 'js' }
    })
  },
})
