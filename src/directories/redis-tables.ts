// The tables of a directory in Redis or Valkey: a hash for each, whose fields are "version untilMs value".

import type { DirectoryTables, PutOutcome, TableEntry } from '../directory.ts'
import type { Connection } from './redis.ts'

/** The number of entries in one call of the script, which blocks Redis for about 2 ms. */
const ENTRIES_AT_ONCE = 200
const OUTCOMES: readonly PutOutcome[] = ['written', 'older', 'full']

/**
 * The script to write. KEYS: the prefix with a colon. ARGV: table, maximum number of keys, and for each entry: key,
 * value, version, untilMs. Returns a number for each. Each call removes some entries that have expired by the clock
 * of Redis; `<table>:until` has the times.
 */
const PUT = `
local prefix, name, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
local key, ends = prefix .. 'table:' .. name, prefix .. 'table:' .. name .. ':until'
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, one in ipairs(redis.call('zrangebyscore', ends, '-inf', string.format('%.0f', now), 'limit', 0, 1000)) do
  redis.call('hdel', key, one)
  redis.call('zrem', ends, one)
end
local size, outcomes = redis.call('hlen', key), {}
for at = 3, #ARGV, 4 do
  local field, value, version, till = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local before = redis.call('hget', key, field)
  if before and tonumber(string.match(before, '^%S+')) >= tonumber(version) then outcomes[#outcomes + 1] = 1
  elseif not before and size >= most then outcomes[#outcomes + 1] = 2
  else
    if not before then size = size + 1 end
    local text = version .. ' ' .. till .. ' ' .. value
    redis.call('hset', key, field, text)
    if till == '0' then redis.call('zrem', ends, field) else redis.call('zadd', ends, till, field) end
    local changes = redis.call('incr', prefix .. 'changed')
    redis.call('publish', prefix .. 'entries', cjson.encode({ name, field, text, string.format('%.0f', changes) }))
    outcomes[#outcomes + 1] = 0
  end
end
return outcomes`

interface Script {
  ltPut(prefix: string, ...args: readonly (string | number)[]): Promise<readonly number[]>
}

export class RedisTables implements DirectoryTables {
  readonly #commands: Connection & Script
  readonly #changes: Connection
  readonly #prefix: string

  /** Makes the tables. `changes`: the listening connection. `prefix`: with a colon. */
  constructor(commands: Connection, changes: Connection, prefix: string) {
    commands.defineCommand('ltPut', { numberOfKeys: 1, lua: PUT })
    // defineCommand has just added it.
    this.#commands = commands as Connection & Script
    this.#changes = changes
    this.#prefix = prefix
  }

  async listen(heard: (table: string, entry: TableEntry, changes: number) => void): Promise<() => void> {
    const channel = `${this.#prefix}entries`
    const listener = (from: string, message: string): void => {
      if (from !== channel) return
      const written = writtenIn(message)
      if (written !== undefined) heard(written.table, written.entry, written.changes)
    }
    this.#changes.on('message', listener)
    await this.#changes.subscribe(channel)
    return () => void this.#changes.off('message', listener)
  }

  async put(table: string, entries: readonly TableEntry[], maxKeys: number): Promise<readonly PutOutcome[]> {
    const outcomes: PutOutcome[] = []
    for (let at = 0; at < entries.length; at += ENTRIES_AT_ONCE) {
      const args = entries
        .slice(at, at + ENTRIES_AT_ONCE)
        .flatMap(({ key, value, version, untilMs }) => [key, value, version, untilMs])
      const numbers = await this.#commands.ltPut(this.#prefix, table, maxKeys, ...args)
      outcomes.push(...numbers.map(number => OUTCOMES[number] ?? 'full'))
    }
    return outcomes
  }

  async read(table: string): Promise<readonly TableEntry[]> {
    const found: TableEntry[] = []
    let cursor = '0'
    do {
      // Reads in pieces, because a table of 100,000 entries would block Redis for a tenth of a second.
      const [next, flat] = await this.#commands.hscan(`${this.#prefix}table:${table}`, cursor, 'COUNT', 1_000)
      for (let at = 0; at < flat.length; at += 2) found.push(entryOf(flat[at] ?? '', flat[at + 1] ?? ''))
      cursor = next
    } while (cursor !== '0')
    return found
  }

  async changes(): Promise<number> {
    return Number((await this.#commands.get(`${this.#prefix}changed`)) ?? 0)
  }
}

/** Returns the written entries. `undefined` if our script did not write them. */
function writtenIn(
  message: string,
): { readonly table: string; readonly entry: TableEntry; readonly changes: number } | undefined {
  try {
    const [table, key, text, changes] = JSON.parse(message) as readonly unknown[]
    if (typeof table !== 'string' || typeof key !== 'string' || typeof text !== 'string') return undefined
    return { table, entry: entryOf(key, text), changes: Number(changes) }
  } catch {
    return undefined
  }
}

function entryOf(key: string, text: string): TableEntry {
  const version = text.indexOf(' ')
  const until = text.indexOf(' ', version + 1)
  return {
    key,
    value: text.slice(until + 1),
    version: Number(text.slice(0, version)),
    untilMs: Number(text.slice(version + 1, until)),
  }
}
