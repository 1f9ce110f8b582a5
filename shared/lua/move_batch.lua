-- Whoever holds a batch records how far it is, and holds it on. ARGV: id, fence, how long in ms it is
-- held from now on, status before, status from now on ('' both: it stays), how long in s an ended batch
-- is kept, then fields and their values.
-- Returns {moved or not, status, now in s}; 'fenced' if somebody else has taken it, or it is gone. If the
-- status is another one than that before, nothing is recorded.
local id, fence, ttl_ms, from, to, keep_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local key, lease = batch_key(id), batch_lease_key(id)
local f = redis.call('HMGET', key, 'fence', 'status', 'file')
if f[1] ~= fence then return 'fenced' end
redis.call('SET', lease, fence, 'PX', ttl_ms)
local now_s = math.floor(now_ms() / 1000)
if to ~= '' and f[2] ~= from then return {0, f[2], now_s} end
if #ARGV > 6 then redis.call('HSET', key, unpack(ARGV, 7)) end
if to == '' then return {1, f[2], now_s} end
redis.call('HSET', key, 'status', to, to .. '_at', now_s)
if to == 'completed' or to == 'failed' or to == 'expired' or to == 'cancelled' then
  redis.call('SREM', file_readers_key(f[3]), id)
  redis.call('EXPIRE', key, keep_s)
end
return {1, to, now_s}
