// The command line with every command known and none of them doing anything.

import { createProgram } from '../../src/cli/program.ts'

const nothing = async () => {}

export const idleProgram = (): ReturnType<typeof createProgram> =>
  createProgram({
    share: nothing,
    shareRaw: nothing,
    serve: nothing,
    up: nothing,
    connect: nothing,
    run: nothing,
    requests: nothing,
    replay: nothing,
    wait: nothing,
    saveFixture: nothing,
    mcp: nothing,
    doctor: nothing,
    checkConfig: nothing,
    printSchema: nothing,
    printCompletions: nothing,
    login: nothing,
    logout: nothing,
    whoami: nothing,
    admin: async () => {},
    link: nothing,
    service: nothing,
    token: nothing,
  })
