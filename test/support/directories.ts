// Directories for the servers of one cluster, in memory and in a real Redis or Valkey.

import { MemoryDirectory } from '../../src/directories/memory.ts'
import { RedisDirectory } from '../../src/directories/redis.ts'
import type { Directory } from '../../src/directory.ts'
import { Redis } from './redis.ts'

export interface Directories extends AsyncDisposable {
  /** For one more server. */
  readonly open: () => Promise<Directory>
}

export function memoryDirectories(): Promise<Directories> {
  const directory = new MemoryDirectory()
  return Promise.resolve({ open: () => Promise.resolve(directory), async [Symbol.asyncDispose]() {} })
}

export async function redisDirectories(
  program: 'redis-server' | 'valkey-server',
): Promise<Directories & { readonly url: string }> {
  const redis = await Redis.start(program)
  const directories: RedisDirectory[] = []
  return {
    url: redis.url,
    async open() {
      const directory = await RedisDirectory.open({ url: redis.url })
      directories.push(directory)
      return directory
    },
    async [Symbol.asyncDispose]() {
      for (const directory of directories) await directory.close()
      await redis[Symbol.asyncDispose]()
    },
  }
}
