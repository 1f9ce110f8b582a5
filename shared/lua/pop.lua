-- Gives this worker the next jobs, one by one, while no other live worker is less loaded.
-- ARGV: incarnation, model, load (jobs it holds), slots, at most how many jobs
-- Returns 'buried', or a list of [id, attempt, created, started, now, count, first token,
-- deadline ('' where there is none), seed], times in ms of Redis' clock.
local me, model, load, slots, want = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('SISMEMBER', WORKERS, me) == 0 then return 'buried' end
local now = now_ms()
local queues = {}
for _, priority in ipairs({'high', 'normal', 'low'}) do
  local key = 'rq:queue:' .. model .. ':' .. priority
  if redis.call('LLEN', key) > 0 then queues[#queues + 1] = key end
end
local jobs = {}
while #queues > 0 and #jobs < want do
  local other, other_load = least_loaded(model, now, me)
  if other and other_load < load then
    ring(other)
    break
  end
  local id = redis.call('LPOP', queues[1])
  if not id then
    table.remove(queues, 1)
  else
    local key = job_key(id)
    local f = redis.call('HMGET', key, 'end', 'worker', 'attempt', 'created_ms', 'started_ms', 'count',
      'first_token_ms', 'deadline_ms', 'seed')
    local owner = f[2] or ''
    -- Dropped: a job that has ended or expired, and a second entry of one that runs elsewhere
    -- (RQ's own cleaners may push one).
    local runs_elsewhere = owner ~= '' and is_live(owner)
      and redis.call('SISMEMBER', taken_key(owner), id) == 1
    if f[9] and not f[1] and not runs_elsewhere then
      if owner ~= '' then redis.call('SREM', taken_key(owner), id) end
      local attempt = tonumber(f[3]) + 1
      local started = f[5] or now
      redis.call('HSET', key, 'attempt', attempt, 'worker', me, 'status', 'running', 'started_ms', started,
        'attempt_ms', now)
      redis.call('SADD', taken_key(me), id)
      load = load + 1
      jobs[#jobs + 1] = {id, attempt, f[4], started, now, f[6], f[7] or '', f[8] or '', f[9]}
    elseif f[1] then
      expire_rq_job(id, redis.call('HGET', key, 'status'), math.max(1, redis.call('TTL', key)))
    end
  end
end
redis.call('HSET', P .. 'load:' .. model, me, string.format('%d %d %d', load, slots, now))
return jobs
