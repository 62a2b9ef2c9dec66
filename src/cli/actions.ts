// The actions of the commands. The code of each is loaded when the command is given.

import type { Command } from 'commander'
import type { AdminSettings } from './commands/admin.ts'
import type { CheckSettings } from './commands/config.ts'
import type { ConnectSettings } from './commands/connect.ts'
import type { DoctorSettings } from './commands/doctor.ts'
import type { LinkSettings } from './commands/link.ts'
import type { LoginIo, LoginSettings } from './commands/login.ts'
import type { McpSettings } from './commands/mcp.ts'
import type { RawSettings } from './commands/raw.ts'
import type { FixtureSettings, ReplaySettings, RequestsSettings, WaitSettings } from './commands/requests.ts'
import type { RunSettings } from './commands/run.ts'
import type { ServeSettings } from './commands/server.ts'
import type { ShareSettings } from './commands/share.ts'
import type { TokenSettings } from './commands/token.ts'
import type { UpSettings } from './commands/up.ts'
import { needBun } from './ends.ts'
import type { OutputWish } from './output.ts'
import { supervised } from './outputs/supervised.ts'
import type { Shell } from './program/completions.ts'
import type { ServiceRequest } from './program/service.ts'
import type { CommandIo, Run } from './run.ts'
import { wrapped } from './terminal/format.ts'
import { paletteFor } from './terminal/palette.ts'

export interface Actions {
  share(settings: ShareSettings, output: OutputWish): Promise<void>
  shareRaw(settings: RawSettings, output: OutputWish): Promise<void>
  up(settings: UpSettings, output: OutputWish): Promise<void>
  connect(settings: ConnectSettings, output: OutputWish): Promise<void>
  run(settings: RunSettings): Promise<void>
  requests(settings: RequestsSettings): Promise<void>
  replay(settings: ReplaySettings): Promise<void>
  wait(settings: WaitSettings): Promise<void>
  saveFixture(settings: FixtureSettings): Promise<void>
  mcp(settings: McpSettings): Promise<void>
  serve(settings: ServeSettings, output: OutputWish): Promise<void>
  doctor(settings: DoctorSettings): Promise<void>
  checkConfig(settings: CheckSettings): Promise<void>
  printSchema(): Promise<void>
  printCompletions(shell: Shell, program: Command): Promise<void>
  login(settings: LoginSettings): Promise<void>
  logout(server: string | undefined): Promise<void>
  whoami(): Promise<void>
  link(settings: LinkSettings): Promise<void>
  token(settings: TokenSettings): Promise<void>
  admin(settings: AdminSettings): Promise<void>
  service(request: ServiceRequest): Promise<void>
}

/** The environment of the commands. */
export interface Stage {
  /** Chooses the output, and begins the run. */
  readonly start: (wish: OutputWish) => Promise<Run>
  readonly write: (text: string) => void
  /** Writes to standard error. */
  readonly log: (text: string) => void
  /** The signal that is aborted when the user wants the command to end. */
  readonly stop: AbortSignal
  readonly ended: (exitCode: number) => void
}

export function createActions({ start, write, log, stop, ended }: Stage): Actions {
  const io: CommandIo = { environment: process.env, write, log, stop }
  return {
    share: async (settings, wish) =>
      (await import('./commands/share.ts')).shareApp(settings, supervised(await start(wish))),
    shareRaw: async (settings, wish) =>
      (await import('./commands/raw.ts')).shareRaw(settings, supervised(await start(wish))),
    serve: async (settings, wish) =>
      (await import('./commands/server.ts')).serve(settings, await start(wish)),
    connect: async (settings, wish) =>
      (await import('./commands/connect.ts')).connect(settings, supervised(await start(wish))),
    up: async (settings, wish) =>
      (await import('./commands/up.ts')).up(settings, supervised(await start(wish))),
    run: async settings => {
      const { runCommand } = await import('./commands/run.ts')
      const { dim } = paletteFor(process.stderr.isTTY, process.env)
      const say = (line: string) => log(`${dim('localtunnels')}  ${line}\n`)
      ended(await runCommand(settings, { environment: process.env, stop, say }))
    },
    requests: async settings => (await import('./commands/requests.ts')).requests(settings, io),
    replay: async settings => ended(await (await import('./commands/requests.ts')).replay(settings, io)),
    wait: async settings => (await import('./commands/requests.ts')).wait(settings, io),
    service: async request => {
      const { service } = await import('./commands/service.ts')
      ended(await service(request, io))
    },
    saveFixture: async settings => (await import('./commands/requests.ts')).saveCaptured(settings, io),
    mcp: async settings => {
      const { mcp } = await import('./commands/mcp.ts')
      await mcp(settings, { ...io, input: process.stdin })
    },
    checkConfig: async settings => {
      const { checkConfig } = await import('./commands/config.ts')
      await checkConfig(settings, { ...io, palette: paletteFor(process.stdout.isTTY, process.env) })
    },
    printSchema: async () => {
      const { jsonSchema } = await import('../config/json-schema.ts')
      write(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
    },
    printCompletions: async (shell, program) => {
      const { completions } = await import('./completions.ts')
      write(completions(shell, program))
    },
    login: async settings => {
      const { login } = await import('./commands/login.ts')
      ended(await login(settings, await loginIo(broken(write))))
    },
    logout: async server => {
      const { logout } = await import('./commands/login.ts')
      ended(logout(server, await loginIo(broken(write))))
    },
    whoami: async () => {
      const { whoami } = await import('./commands/login.ts')
      ended(whoami(await loginIo(broken(write))))
    },
    token: async settings => {
      needBun()
      const { token } = await import('./commands/token.ts')
      token(settings, io)
    },
    link: async settings => {
      const { link } = await import('./commands/link.ts')
      await link(settings, io)
    },
    admin: async settings => {
      const { admin } = await import('./commands/admin.ts')
      await admin(settings, io)
    },
    doctor: async settings => {
      const { doctor } = await import('./commands/doctor.ts')
      const columns = process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY
      const palette = paletteFor(process.stdout.isTTY, process.env)
      ended(await doctor(settings, { ...io, palette, columns }))
    },
  }
}

/** Returns a writer that breaks lines between words on a terminal. */
function broken(write: (text: string) => void): (text: string) => void {
  if (!process.stdout.isTTY) return write
  const columns = process.stdout.columns || 80
  return text =>
    write(
      text
        .split('\n')
        .flatMap(line => wrapped(line, columns))
        .join('\n'),
    )
}

/** Returns the environment of the commands about logins. */
async function loginIo(write: (text: string) => void): Promise<LoginIo> {
  const { Logins } = await import('./settings/logins.ts')
  return {
    logins: new Logins(process.env),
    environment: process.env,
    input: process.stdin,
    write,
    prompt: text => process.stderr.write(text),
  }
}
