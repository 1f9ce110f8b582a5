-- A heartbeat; 0 tells a buried worker that it is dead and must exit.
-- ARGV: incarnation, heartbeat TTL in ms, report (JSON), model
if redis.call('SISMEMBER', WORKERS, ARGV[1]) == 0 then return 0 end
local now = now_ms()
redis.call('SET', beat_key(ARGV[1]), '1', 'PX', ARGV[2])
redis.call('HSET', worker_key(ARGV[1]), 'report', ARGV[3], 'beat_ms', now)
redis.call('HSET', SERVED, ARGV[4], now)
return 1
