-- Gives this worker the next jobs, one by one, while no other live worker is less loaded.
-- ARGV: incarnation, model, load (jobs it holds), slots, at most how many jobs, how many jobs of higher
-- priority may overtake a waiting one
-- Returns 'buried', or a list of [id, attempt, created, started, now, count, first token,
-- deadline ('' where there is none), seed, deaths if it must run alone or ''], times in ms of Redis'
-- clock; what was in a queue and is no job of ours comes as [id].
local me, model, load, slots, want = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local patience = tonumber(ARGV[6])
if redis.call('SISMEMBER', WORKERS, me) == 0 then return 'buried' end
local now, jobs = now_ms(), {}
local loads, passed = P .. 'load:' .. model, P .. 'passed:' .. model
local alone, ward = P .. 'alone:' .. me, P .. 'ward:' .. model

local function report(shown_load)
  redis.call('HSET', loads, me, string.format('%d %d %d', shown_load, slots, now))
end

local function discard(id)
  if redis.call('TYPE', 'rq:job:' .. id).ok == 'hash' then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'failed')
    redis.call('EXPIRE', 'rq:job:' .. id, 86400)
  end
  jobs[#jobs + 1] = {id}
end

-- Whether the job is this worker's now.
local function take(id, is_alone)
  local key = job_key(id)
  local f = redis.pcall('HMGET', key, 'end', 'worker', 'attempt', 'created_ms', 'started_ms', 'count',
    'first_token_ms', 'deadline_ms', 'seed', 'deaths', 'status')
  if f.err then
    discard(id)
    return false
  end
  if f[1] then  -- it has ended
    expire_rq_job(id, f[11], math.max(1, redis.call('TTL', key)))
    return false
  end
  local attempt = tonumber(f[3] or '')
  local is_whole = #id == 32 and attempt and tonumber(f[4] or '') and tonumber(f[6] or '') and tonumber(f[9] or '')
  if not is_whole then
    discard(id)
    return false
  end
  -- A second entry of one that runs elsewhere: RQ's own cleaners may push one.
  local owner = f[2] or ''
  if owner ~= '' and is_live(owner) and redis.call('SISMEMBER', taken_key(owner), id) == 1 then return false end
  if owner ~= '' then redis.call('SREM', taken_key(owner), id) end
  if f[11] == 'queued' then count_waiting(id, -1) end
  local started = f[5] or now
  redis.call('HSET', key, 'attempt', attempt + 1, 'worker', me, 'status', 'running', 'started_ms', started,
    'attempt_ms', now, 'alone', is_alone and '1' or '')
  redis.call('SADD', taken_key(me), id)
  load = load + 1
  jobs[#jobs + 1] = {id, attempt + 1, f[4], started, now, f[6], f[7] or '', f[8] or '', f[9],
    is_alone and f[10] or ''}
  return true
end

-- One worker at a time empties itself and runs suspects, each alone, while the others serve on.
if redis.call('EXISTS', alone) == 1 then
  if load > 0 then
    redis.call('SET', ward, me, 'PX', 5000)
    report(slots)
    return jobs
  end
  redis.call('DEL', alone)
end
local suspects = suspects_key(model)
if redis.call('LLEN', suspects) > 0 then
  local guard = redis.call('GET', ward)
  local other, other_load = least_loaded(model, now, me)
  if guard and guard ~= me and is_live(guard) then
    -- It is another's turn.
  elseif guard ~= me and other and other_load < load then
    ring(other)
  else
    redis.call('SET', ward, me, 'PX', 5000)
    report(slots)
    while load == 0 do
      local id = redis.call('LPOP', suspects)
      if not id then break end
      if take(id, true) then redis.call('SET', alone, id) end
    end
    if load > 0 then return jobs end
    redis.call('DEL', ward)
  end
end

-- The highest priority first, unless a lower one has been overtaken too often.
local PRIORITIES = {'high', 'normal', 'low'}
local function next_priority()
  local first = nil
  for rank = 3, 1, -1 do
    if redis.call('LLEN', queue_key(model .. ':' .. PRIORITIES[rank])) > 0 then
      if rank > 1 and tonumber(redis.call('HGET', passed, PRIORITIES[rank]) or '0') >= patience then
        return rank
      end
      first = rank
    end
  end
  return first
end

local num_taken = 0
while num_taken < want do
  local rank = next_priority()
  if not rank then break end
  local other, other_load = least_loaded(model, now, me)
  if other and other_load < load then
    ring(other)
    break
  end
  if take(redis.call('LPOP', queue_key(model .. ':' .. PRIORITIES[rank])), false) then
    num_taken = num_taken + 1
    redis.call('HDEL', passed, PRIORITIES[rank])
    for lower = rank + 1, 3 do
      if redis.call('LLEN', queue_key(model .. ':' .. PRIORITIES[lower])) > 0 then
        redis.call('HINCRBY', passed, PRIORITIES[lower], 1)
      end
    end
  end
end
report(load)
return jobs
