-- A worker is gone: its jobs go back to the front of their queues, its totals are folded once, and
-- nothing it still writes counts. With ARGV[2] = '1' only if its heartbeat has lapsed.
-- ARGV: incarnation, only if lapsed, deaths after which a job fails, result TTL in s,
-- 0 if the death was an operator's doing and counts against no job
-- Returns false if there was nothing to bury, else the ids of the jobs that went back or ended.
local who, max_deaths, ttl_s = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local counts = tonumber(ARGV[5] or '1')
if ARGV[2] == '1' and redis.call('EXISTS', beat_key(who)) == 1 then return false end
if redis.call('SREM', WORKERS, who) == 0 then return false end
local now, moved = now_ms(), {}
local report = redis.call('HGET', P .. 'worker:' .. who, 'report')
if report then redis.call('HDEL', P .. 'load:' .. (cjson.decode(report).model or ''), who) end
for _, id in ipairs(redis.call('SMEMBERS', taken_key(who))) do
  local f = redis.call('HMGET', job_key(id), 'worker', 'end', 'cancel')
  if f[1] == who and not f[2] then
    local deaths = redis.call('HINCRBY', job_key(id), 'deaths', counts)
    redis.call('HSET', job_key(id), 'worker', '')
    if f[3] then
      end_without_worker(id, 'cancelled', 'cancelled', '', '', ttl_s, now)
    elseif deaths >= max_deaths then
      end_without_worker(id, 'failed', 'error', 'worker_lost',
        'The worker died ' .. deaths .. ' times while it ran this job.', ttl_s, now)
    else
      requeue(id, now)
    end
    moved[#moved + 1] = id
  end
end
local totals = redis.call('HGETALL', totals_key(who))
for i = 1, #totals, 2 do redis.call('HINCRBY', SERVICE, totals[i], totals[i + 1]) end
redis.call('DEL', totals_key(who), taken_key(who), beat_key(who), P .. 'worker:' .. who, P .. 'bell:' .. who)
return moved
