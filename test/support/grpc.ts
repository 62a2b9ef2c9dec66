// The gRPC server of node-grpc.mjs, in a Node of its own.

import { join } from 'node:path'
import { within } from './within.ts'

const SCRIPT = join(import.meta.dir, 'node-grpc.mjs')

export async function startNodeServer(): Promise<{ readonly port: number } & Disposable> {
  const program = Bun.spawn(['node', SCRIPT, 'server'], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const { value } = await within(program.stdout.getReader().read(), 'the server of gRPC')
  return {
    port: Number(new TextDecoder().decode(value)),
    [Symbol.dispose]: () => program.kill(),
  }
}
