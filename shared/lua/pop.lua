-- Gives this worker the next jobs, one by one, while no other live worker is less loaded.
-- ARGV: incarnation, model, load (jobs it holds), slots, at most how many jobs, how many jobs of higher
-- priority may overtake a waiting one, result TTL in s, how many of its jobs of low priority would give
-- way to others
-- Returns 'buried', or a list of [id, attempt, created, started, now, count, first token,
-- deadline ('' where there is none), seed, deaths if it must run alone or '', owner], times in ms of Redis'
-- clock; what was in a queue and is no job of ours comes as [id].
local me, model, load, slots, want = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local patience, ttl_s, give_way = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
if redis.call('SISMEMBER', WORKERS, me) == 0 then return 'buried' end
local now, jobs = now_ms(), {}
local loads, passed = load_key(model), passed_key(model)
local alone, ward = alone_key(me), ward_key(model)

local function report(shown_load)
  redis.call('HSET', loads, me, string.format('%d %d %d', shown_load, slots, now))
end

-- What is no job of ours, or is damaged: it ends where it can, and is told.
local function discard(id, status)
  if status then
    redis.call('HSET', job_key(id), 'model', model)
    end_without_worker(id, 'failed', 'error', 'internal_error',
      'The record of this job in Redis was damaged.', ttl_s, now)
  else
    expire_rq_job(id, 'failed', ttl_s)
  end
  jobs[#jobs + 1] = {id}
end

-- Whether the job is this worker's now.
local function take(id, is_alone)
  local key = job_key(id)
  local f = redis.pcall('HMGET', key, 'end', 'worker', 'attempt', 'created_ms', 'started_ms', 'count',
    'first_token_ms', 'deadline_ms', 'seed', 'deaths', 'status', 'suspect', 'cancel', 'owner')
  if f.err then
    discard(id, nil)
    return false
  end
  if f[1] then  -- it has ended
    expire_rq_job(id, f[11], math.max(1, redis.call('TTL', key)))
    return false
  end
  local attempt = whole(f[3])
  local is_whole = #id == 32 and attempt and whole(f[4]) and whole(f[6]) and whole(f[9])
    and (not f[5] or whole(f[5])) and (not f[7] or whole(f[7])) and (not f[8] or whole(f[8]))
    and (f[11] == 'queued' or f[11] == 'running')
  if not is_whole then
    discard(id, f[11])
    return false
  end
  -- A second entry of one that runs elsewhere: RQ's own cleaners may push one. Its worker need not have
  -- beaten of late: if it is gone it is buried, and that brings the job back.
  local owner = f[2] or ''
  if owner ~= '' and redis.call('SISMEMBER', WORKERS, owner) == 1
    and redis.call('SISMEMBER', taken_key(owner), id) == 1 then return false end
  if owner ~= '' then redis.call('SREM', taken_key(owner), id) end
  if f[13] then
    end_without_worker(id, 'cancelled', 'cancelled', '', '', ttl_s, now)
    return false
  end
  if f[8] and whole(f[8]) <= now then
    end_without_worker(id, 'failed', 'timeout', 'timeout',
      'The deadline passed while the job was queued; the text so far is kept.', ttl_s, now)
    return false
  end
  if f[12] and not is_alone then
    requeue(id, now)  -- to where it belongs
    return false
  end
  if f[11] == 'queued' then count_waiting(id, -1) end
  local started = f[5] or now
  if not f[5] then observe(totals_key(me), model, 'queue', now - whole(f[4])) end
  redis.call('HSET', key, 'attempt', attempt + 1, 'worker', me, 'status', 'running', 'started_ms', started,
    'attempt_ms', now, 'alone', is_alone and '1' or '')
  redis.call('SADD', taken_key(me), id)
  load = load + 1
  jobs[#jobs + 1] = {id, attempt + 1, f[4], started, now, f[6], f[7] or '', f[8] or '', f[9],
    is_alone and whole(f[10]) or '', f[14] or ''}
  return true
end

-- One worker at a time empties itself and runs suspects, each alone, while the others serve on. It has the
-- turn while it runs one, or comes here often enough: one that drains or hangs loses it.
local guard = redis.call('GET', ward)
if guard and guard ~= me then
  local seen = whole(string.match(redis.call('HGET', loads, guard) or '', '(%d+)$'))
  local is_at_it = redis.call('EXISTS', alone_key(guard)) == 1 or (seen and now - seen < 5000)
  if not (is_live(guard) and is_at_it) then guard = nil end
end
if redis.call('EXISTS', alone) == 1 then
  if load > 0 then
    if not guard then redis.call('SET', ward, me) end
    report(slots)
    return jobs
  end
  redis.call('DEL', alone)
end
local suspects = suspects_key(model)
if redis.call('LLEN', suspects) > 0 then
  local other, other_load = least_loaded(model, now, me)
  if guard and guard ~= me then
    -- It is another's turn.
  elseif guard ~= me and other and other_load < load then
    ring(other)
  else
    redis.call('SET', ward, me)
    report(slots)
    while load == 0 do
      local id = redis.call('LPOP', suspects)
      if not id then break end
      if take(id, true) then redis.call('SET', alone, id) end
    end
    if load > 0 then return jobs end
    redis.call('DEL', ward)
  end
elseif guard == me then
  redis.call('DEL', ward)
end

-- The highest priority first, unless a lower one has been overtaken too often.
local PRIORITIES = {'high', 'normal', 'low'}
local function next_priority()
  local first = nil
  for rank = 3, 1, -1 do
    if redis.call('LLEN', queue_key(model .. ':' .. PRIORITIES[rank])) > 0 then
      if rank > 1 and (whole(redis.call('HGET', passed, PRIORITIES[rank])) or 0) >= patience then
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

-- Its slots are full, some of jobs of low priority: these go back to their queue for others.
for rank = 1, 2 do
  while num_taken == want and give_way > 0 do
    local queue = queue_key(model .. ':' .. PRIORITIES[rank])
    if redis.call('LLEN', queue) == 0 then break end
    local other, other_load = least_loaded(model, now, me)
    if other and other_load < load then
      ring(other)
      break
    end
    if take(redis.call('LPOP', queue), false) then give_way = give_way - 1 end
  end
end
report(load)
return jobs
