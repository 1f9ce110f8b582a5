-- A worker is gone: its jobs go back to the front of their queues, its totals are folded once, and
-- nothing it still writes counts. With ARGV[2] = '1' only if its heartbeat has lapsed.
-- ARGV: incarnation, only if lapsed, deaths after which a job runs alone, result TTL in s,
-- 0 if the death was an operator's doing and counts against no job
-- Returns false if there was nothing to bury, else the ids of the jobs that went back or ended.
local who, max_deaths, ttl_s = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local counts = tonumber(ARGV[5] or '1')
if ARGV[2] == '1' and redis.call('EXISTS', beat_key(who)) == 1 then return false end
local report = redis.pcall('HGET', worker_key(who), 'report')
local is_read, facts = pcall(cjson.decode, type(report) == 'string' and report or '{}')
local model = is_read and type(facts) == 'table' and type(facts.model) == 'string' and facts.model or ''
if redis.call('SREM', WORKERS, who) == 0 then return false end
local now, moved = now_ms(), {}
if counts == 1 then redis.call('HINCRBY', SERVICE, 'worker_deaths', 1) end
redis.call('HDEL', load_key(model), who)
if redis.call('GET', ward_key(model)) == who then redis.call('DEL', ward_key(model)) end
for _, id in ipairs(redis.call('SMEMBERS', taken_key(who))) do
  local key = job_key(id)
  local f = redis.call('HMGET', key, 'worker', 'end', 'cancel', 'alone')
  if f[1] == who and not f[2] then
    local deaths = redis.call('HINCRBY', key, 'deaths', counts)
    redis.call('HSET', key, 'worker', '')
    if f[3] then
      end_without_worker(id, 'cancelled', 'cancelled', '', '', ttl_s, now)
    elseif f[4] == '1' and counts == 1 then
      end_without_worker(id, 'failed', 'error', 'worker_lost', 'The worker died ' .. deaths ..
        ' times while it ran this job, the last time while it ran nothing else.', ttl_s, now)
    else
      if deaths >= max_deaths then redis.call('HSET', key, 'suspect', '1') end
      requeue(id, now)
      redis.call('HINCRBY', SERVICE, 'recovered_jobs', 1)
    end
    moved[#moved + 1] = id
  end
end
local totals = redis.call('HGETALL', totals_key(who))
for i = 1, #totals, 2 do
  -- Not as a number of Lua: sums in microseconds have more digits than that keeps.
  local text = totals[i + 1]
  if #text <= 18 and string.match(text, '^%d+$') then redis.call('HINCRBY', SERVICE, totals[i], text) end
end
redis.call('DEL', totals_key(who), taken_key(who), beat_key(who), worker_key(who),
  bell_key(who), alone_key(who))
return moved
