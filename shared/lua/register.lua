-- A worker is born. ARGV: incarnation, heartbeat TTL in ms, report (JSON), model
local now = now_ms()
redis.call('SADD', WORKERS, ARGV[1])
redis.call('SET', beat_key(ARGV[1]), '1', 'PX', ARGV[2])
redis.call('HSET', worker_key(ARGV[1]), 'report', ARGV[3], 'beat_ms', now)
redis.call('HSET', SERVED, ARGV[4], now)
return 1
