// The scripts of a directory in Redis, each of which is atomic. `memory.ts` is the same in TypeScript, and a test
// compares them.
//
// KEYS[1] is always the prefix with a colon; the names of all other keys begin with it. A name is a hash of epoch,
// proof, shared, tls, and for each server that holds it a field "@<server>" with the epoch of its hold.

/** The common part of scripts that read a name: its hash without servers whose lease is over; `nil` if the name is free. */
const RECORD = `
local prefix = KEYS[1]
local function record(name)
  local key = prefix .. 'name:' .. name
  local fields = redis.call('hgetall', key)
  if #fields == 0 then return nil end
  local found = { nodes = {}, count = 0 }
  for at = 1, #fields, 2 do
    local field, value = fields[at], fields[at + 1]
    if string.sub(field, 1, 1) ~= '@' then found[field] = value
    else
      local node = string.sub(field, 2)
      if redis.call('exists', prefix .. 'lease:' .. node) == 1 then
        found.nodes[node] = tonumber(value)
        found.count = found.count + 1
      else redis.call('hdel', key, field) end
    end
  end
  if found.count > 0 then return found end
  redis.call('del', key)
  return nil
end
local function put(node, name, epoch, proof, shared, tls, ms)
  local key = prefix .. 'name:' .. name
  if shared ~= '1' then redis.call('del', key) end
  redis.call('hset', key, 'epoch', epoch, 'proof', proof, 'shared', shared, 'tls', tls, '@' .. node, epoch)
  if string.match(name, '^tcp%-%d+$') or string.match(name, '^udp%-%d+$') then
    redis.call('sadd', prefix .. 'ports', name)
  end
  redis.call('pexpire', key, ms)
end
local function tell(name, node, epoch)
  redis.call('publish', prefix .. 'changes', name .. ' ' .. node .. ' ' .. string.format('%.0f', epoch))
end
`

/**
 * The common part for time. From its first call on, a directory is early for a while, because servers reconnect in any order.
 * Epochs begin with the current time: those before a loss were granted earlier, and a server that was cut off knows only them.
 */
const BORN = `
local function born(ms)
  if redis.call('setnx', KEYS[1] .. 'born', '1') == 0 then return end
  local time = redis.call('time')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if now > tonumber(redis.call('get', KEYS[1] .. 'epoch') or '0') then
    redis.call('set', KEYS[1] .. 'epoch', string.format('%.0f', now))
  end
  if tonumber(ms) > 0 then redis.call('set', KEYS[1] .. 'early', '1', 'px', ms) end
end
`

/**
 * The script of a heartbeat. ARGV: server, URL, nodeMs, leaseMs, earlyMs, highest epoch. Returns whether the server
 * was known, and the highest epoch here.
 */
export const BEAT: string = `${BORN}
local prefix, node = KEYS[1], ARGV[1]
local known = redis.call('exists', prefix .. 'lease:' .. node)
redis.call('set', prefix .. 'node:' .. node, ARGV[2], 'px', ARGV[3])
redis.call('set', prefix .. 'lease:' .. node, '1', 'px', ARGV[4])
redis.call('sadd', prefix .. 'nodes', node)
born(ARGV[5])
local last = tonumber(redis.call('get', prefix .. 'epoch') or '0')
if tonumber(ARGV[6]) > last then
  redis.call('set', prefix .. 'epoch', ARGV[6])
  last = tonumber(ARGV[6])
end
return { known, last }`

/**
 * The script to claim a name. ARGV: server, name, shown, next, shared, tls, holdMs, earlyMs. Returns the epoch and
 * whether it was proved; 0 if the name is in use; negative, in milliseconds, if it is too early.
 */
export const CLAIM: string = `${RECORD}${BORN}
local node, name, shown, next, shared, tls, ms, early = unpack(ARGV)
local found = record(name)
local proof, proved = next, 0
if found and found.shared ~= '1' then
  if shared == '1' or shown == '' or found.proof ~= shown then return { 0, 0 } end
  proof, proved = shown, 1
elseif found and shared ~= '1' then return { 0, 0 }
elseif not found then
  born(early)
  local wait = redis.call('pttl', prefix .. 'early')
  if wait > 0 then return { -wait, 0 } end
end
if shared == '1' then proof = '' end
local epoch = redis.call('incr', prefix .. 'epoch')
put(node, name, epoch, proof, shared, tls, ms)
tell(name, node, epoch)
return { epoch, proved }`

/**
 * The script to restore names. ARGV: server, holdMs, and for each: name, epoch, proof, shared, tls. Returns the names
 * that another server has.
 */
export const RESTORE: string = `${RECORD}
local node, ms, lost = ARGV[1], ARGV[2], {}
for at = 3, #ARGV, 5 do
  local name, epoch, proof, shared, tls = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local found = record(name)
  local own = found and found.nodes[node]
  local taken = found and not own and (found.shared ~= shared or (shared ~= '1' and tonumber(found.epoch) >= epoch))
  if taken then lost[#lost + 1] = name
  -- The server has claimed it again since it said this.
  elseif own and own > epoch then redis.call('pexpire', prefix .. 'name:' .. name, ms)
  else
    local last = tonumber(redis.call('get', prefix .. 'epoch') or '0')
    if epoch > last then redis.call('set', prefix .. 'epoch', epoch) end
    put(node, name, epoch, proof, shared, tls, ms)
    -- A name that was unknown is asked for again within a second: to tell all servers of each name would hold up a Redis that lost its data.
    if found and not own then tell(name, node, epoch) end
  end
end
return lost`

/** The script to release a name. ARGV: server, name, epoch; for a claim without a reply also: proof, shared. */
export const RELEASE: string = `
local prefix, key, field = KEYS[1], KEYS[1] .. 'name:' .. ARGV[2], '@' .. ARGV[1]
local own = redis.call('hget', key, field)
if not own then return 0 end
if own ~= ARGV[3] then
  local proof, shared = unpack(redis.call('hmget', key, 'proof', 'shared'))
  if #ARGV == 3 or shared ~= ARGV[5] or (shared ~= '1' and proof ~= ARGV[4]) then return 0 end
end
redis.call('hdel', key, field)
local left = 0
for _, name in ipairs(redis.call('hkeys', key)) do
  if string.sub(name, 1, 1) == '@' then left = left + 1 end
end
if left == 0 then
  redis.call('del', key)
  redis.call('srem', prefix .. 'ports', ARGV[2])
end
redis.call('publish', prefix .. 'changes', ARGV[2] .. '  ' .. own)
return 1`

/**
 * The script to find a name. ARGV: name. Returns whether its TLS goes to the client, then server, URL, server, URL,
 * …; an empty server and URL while a server with the name may not have reported it yet.
 */
export const FIND: string = `${RECORD}
local found = record(ARGV[1])
if not found then
  if redis.call('exists', prefix .. 'born') == 0 or redis.call('exists', prefix .. 'early') == 1 then return { '', '', '' } end
  return { '' }
end
local answer = { found.tls or '' }
for node in pairs(found.nodes) do
  answer[#answer + 1] = node
  answer[#answer + 1] = redis.call('get', prefix .. 'node:' .. node) or ''
end
return answer`

/** The script to filter ports. ARGV: their names. Returns the claimed names; the others are removed. */
export const HELD: string = `${RECORD}
local held = {}
for _, name in ipairs(ARGV) do
  if record(name) then held[#held + 1] = name else redis.call('srem', prefix .. 'ports', name) end
end
return held`

/** The script to list servers: returns server, URL, … of those with a heartbeat; the others are removed. */
export const NODES: string = `
local prefix, answer = KEYS[1], {}
for _, node in ipairs(redis.call('smembers', prefix .. 'nodes')) do
  local url = redis.call('get', prefix .. 'node:' .. node)
  if url then
    answer[#answer + 1] = node
    answer[#answer + 1] = url
  elseif redis.call('exists', prefix .. 'lease:' .. node) == 0 then redis.call('srem', prefix .. 'nodes', node) end
end
return answer`

/** The script for the secret. ARGV: the secret if there is none yet. */
export const SECRET: string = `
redis.call('setnx', KEYS[1] .. 'secret', ARGV[1])
return redis.call('get', KEYS[1] .. 'secret')`
