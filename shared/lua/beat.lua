-- A heartbeat; 0 tells a buried worker that it is dead and must exit.
-- ARGV: incarnation, heartbeat TTL in ms, report (JSON), model, then names and values of what this worker
-- alone counts, since it began: a beat that is repeated, late or lost counts nothing twice.
if redis.call('SISMEMBER', WORKERS, ARGV[1]) == 0 then return 0 end
local now = now_ms()
redis.call('SET', beat_key(ARGV[1]), '1', 'PX', ARGV[2])
redis.call('HSET', worker_key(ARGV[1]), 'report', ARGV[3], 'beat_ms', now)
redis.call('HSET', SERVED, ARGV[4], now)
local totals = totals_key(ARGV[1])
for i = 5, #ARGV, 2 do
  local before, value = whole(redis.call('HGET', totals, ARGV[i]) or ''), whole(ARGV[i + 1])
  if value and value > (before or 0) then redis.call('HSET', totals, ARGV[i], ARGV[i + 1]) end
end
return 1
