// Entry `localtunnels/cluster`: the directory for several servers. Loaded only by programs that run more than one.

export { MemoryDirectory } from './directories/memory.ts'
export { RedisDirectory, type RedisDirectoryOptions } from './directories/redis.ts'
export { RedisCertificates, type RedisCertificatesOptions } from './directories/redis-certificates.ts'
export { RedisRates } from './directories/redis-rates.ts'
export type {
  Directory,
  DirectoryListener,
  DirectoryTables,
  DirectoryTimes,
  Hold,
  NameOutcome,
  NameWish,
  Node,
  PutOutcome,
  TableEntry,
} from './directory.ts'
export type { RateShare, SharedRates } from './shared-rates.ts'
