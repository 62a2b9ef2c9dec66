// The library that is measured. `BENCH_TUNNEL` names another module: tests put a broken client there, and every suite must then fail.

const measured = (await import(
  process.env.BENCH_TUNNEL ?? '../../src/index.ts'
)) as typeof import('../../src/index.ts')

export const TunnelClient: typeof measured.TunnelClient = measured.TunnelClient
export const TunnelServer: typeof measured.TunnelServer = measured.TunnelServer
