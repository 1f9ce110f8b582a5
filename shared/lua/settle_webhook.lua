-- What came of one try to deliver. ARGV: delivery id, attempt, delivered | retry | dropped, error ('' for
-- none), in how many ms to try again, how long it is kept in s. Returns 0 if somebody took it since.
local id, key = ARGV[1], webhook_key(ARGV[1])
if redis.call('HGET', key, 'attempts') ~= ARGV[2] or not redis.call('ZSCORE', WEBHOOKS, id) then return 0 end
if ARGV[4] == '' then redis.call('HDEL', key, 'error') else redis.call('HSET', key, 'error', ARGV[4]) end
if ARGV[3] == 'retry' then
  redis.call('ZADD', WEBHOOKS, now_ms() + ARGV[5], id)
  return 1
end
redis.call('ZREM', WEBHOOKS, id)
redis.call('HDEL', key, 'data')
redis.call('HINCRBY', SERVICE, 'webhooks_' .. ARGV[3], 1)
if ARGV[3] == 'delivered' then redis.call('HSET', key, 'delivered_ms', now_ms()) end
redis.call('EXPIRE', key, ARGV[6])
return 1
