// The scripts of `RedisCertificates`, each of which is atomic. KEYS[1] is the prefix with a colon. Times are those of
// the caller's clock.

/**
 * The script to plan the next check. ARGV: id, times as JSON, time of the check. Does nothing if there is no such
 * certificate.
 */
export const RESCHEDULE: string = `
local prefix, id = KEYS[1], ARGV[1]
if redis.call('hexists', prefix .. 'certificates', id) == 0 then return 0 end
redis.call('hset', prefix .. 'times', id, ARGV[2])
redis.call('zadd', prefix .. 'due', ARGV[3], id)
return 1`

/** The script to forget. ARGV: a time. Orders, refusals and claims begin with one; those before it are removed. */
export const PRUNE: string = `
local before = tonumber(ARGV[1])
for _, name in ipairs({ 'orders', 'refusals', 'claims' }) do
  local all = redis.call('hgetall', KEYS[1] .. name)
  for at = 1, #all, 2 do
    if tonumber(string.match(all[at + 1], '^%S+')) < before then redis.call('hdel', KEYS[1] .. name, all[at]) end
  end
end
return 1`

/**
 * The script to admit an order. ARGV: id, now, number of orders for a name and their window, number of orders for all
 * and their window. Returns the time when one is allowed; '' if it was counted.
 */
export const ADMIT: string = `
local prefix, id, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
local ofName, ofAll = prefix .. 'admitted:' .. id, prefix .. 'admitted'
local function freeAt(key, most, window)
  redis.call('zremrangebyscore', key, '-inf', string.format('%.0f', now - window))
  if most == 0 then return nil end
  local last = redis.call('zrevrange', key, most - 1, most - 1, 'withscores')
  return last[2] and tonumber(last[2]) + window
end
local name = freeAt(ofName, tonumber(ARGV[3]), tonumber(ARGV[4]))
local all = freeAt(ofAll, tonumber(ARGV[5]), tonumber(ARGV[6]))
if name or all then return string.format('%.0f', math.max(name or 0, all or 0)) end
local member = redis.call('incr', prefix .. 'admissions')
redis.call('zadd', ofName, ARGV[2], member)
redis.call('zadd', ofAll, ARGV[2], member)
redis.call('pexpire', ofName, ARGV[4] + 60000)
return ''`

/** The script to claim. ARGV: id, holder, now, until. Returns whether the claim succeeded. */
export const CLAIM: string = `
local key, id, holder, now = KEYS[1] .. 'claims', ARGV[1], ARGV[2], tonumber(ARGV[3])
local held = redis.call('hget', key, id)
if held then
  local till, other = string.match(held, '^(%S+) (.*)$')
  if other ~= holder and tonumber(till) > now then return 0 end
end
redis.call('hset', key, id, ARGV[4] .. ' ' .. holder)
return 1`

/** The script to release. ARGV: id, holder. */
export const RELEASE: string = `
local key, held = KEYS[1] .. 'claims', redis.call('hget', KEYS[1] .. 'claims', ARGV[1])
if held and string.match(held, '^%S+ (.*)$') == ARGV[2] then redis.call('hdel', key, ARGV[1]) end
return 1`
