-- ARGV: job id, result TTL in s. Returns missing, ended, cancelled (it was queued) or cancelling.
local id, ttl_s = ARGV[1], tonumber(ARGV[2])
local f = redis.call('HMGET', job_key(id), 'status', 'end', 'worker')
if not f[1] then return 'missing' end
if f[2] then return 'ended' end
if f[3] ~= '' then
  redis.call('HSET', job_key(id), 'cancel', '1')
  return 'cancelling'
end
end_without_worker(id, 'cancelled', 'cancelled', '', '', ttl_s, now_ms())
return 'cancelled'
