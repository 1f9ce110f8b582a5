-- What came of one try to deliver. ARGV: delivery id, attempt, delivered | retry | dropped, error ('' for
-- none), in how many ms to try again, how long it is kept in s. Returns 0 if somebody took it since.
local id, key = ARGV[1], webhook_key(ARGV[1])
if redis.call('HGET', key, 'attempts') ~= ARGV[2] then return 0 end
if ARGV[3] == 'retry' then
  if redis.call('ZADD', WEBHOOKS, 'XX', 'CH', now_ms() + ARGV[5], id) == 0 then return 0 end
  redis.call('HSET', key, 'error', ARGV[4])
  return 1
end
if redis.call('ZREM', WEBHOOKS, id) == 0 then return 0 end
if ARGV[4] == '' then redis.call('HDEL', key, 'error') else redis.call('HSET', key, 'error', ARGV[4]) end
redis.call('HDEL', key, 'data')
redis.call('HINCRBY', SERVICE, 'webhooks_' .. ARGV[3], 1)
if ARGV[3] == 'delivered' then redis.call('HSET', key, 'delivered_ms', now_ms()) end
redis.call('EXPIRE', key, ARGV[6])
return 1
