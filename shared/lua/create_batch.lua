-- A batch is accepted, or refused. ARGV: id, digest of what was asked for, what was asked for (JSON),
-- owner ('' for none), id of its input file, most open batches, how long in s it may take, how long in s
-- it is listed.
-- Returns new, same (it is there already), conflict (another one has this id) or full.
local id, digest, record, owner, file, ttl_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[8]
local key, now = batch_key(id), now_ms()
local old = redis.call('HGET', key, 'body')
if old then return old == digest and 'same' or 'conflict' end
if redis.call('SCARD', OPEN_BATCHES) >= tonumber(ARGV[6]) then return 'full' end
local now_s = math.floor(now / 1000)
redis.call('HSET', key, 'body', digest, 'record', record, 'owner', owner, 'file', file, 'status', 'validating',
  'fence', 0, 'created_at', now_s, 'expires_at', now_s + tonumber(ARGV[7]))
redis.call('SADD', OPEN_BATCHES, id)
redis.call('SADD', file_readers_key(file), id)
for _, list in ipairs({BATCHES, owner ~= '' and BATCHES .. ':' .. owner or nil}) do
  redis.call('ZADD', list, now, id)
  redis.call('ZREMRANGEBYSCORE', list, '-inf', now - 1000 * tonumber(ttl_s))
  redis.call('EXPIRE', list, ttl_s)
end
return 'new'
