-- Names (see shared/keys.py) and the moves that several scripts share. Prepended to every script.
local P = 'mini-vllm:'
local function job_key(id) return P .. 'job:' .. id end
local function stream_key(id) return P .. 'stream:' .. id end
local function totals_key(incarnation) return P .. 'worker-totals:' .. incarnation end
local function taken_key(incarnation) return P .. 'taken:' .. incarnation end
local function beat_key(incarnation) return P .. 'beat:' .. incarnation end
local WORKERS, SERVICE, DEADLINES, JOBS = P .. 'workers', P .. 'totals', P .. 'deadlines', P .. 'jobs'

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function is_live(incarnation)
  return redis.call('SISMEMBER', WORKERS, incarnation) == 1
    and redis.call('EXISTS', beat_key(incarnation)) == 1
end

local function ring(incarnation)
  local bell = P .. 'bell:' .. incarnation
  if redis.call('LLEN', bell) == 0 then
    redis.call('LPUSH', bell, '1')
    redis.call('EXPIRE', bell, 60)
  end
end

-- The worker of this model that should take the next job: live, seen of late, with a free slot,
-- least loaded. Its load, or nil where there is none.
local function least_loaded(model, now, except)
  local loads = redis.call('HGETALL', P .. 'load:' .. model)
  local best, best_load = nil, nil
  for i = 1, #loads, 2 do
    local name = loads[i]
    local load, slots, seen = string.match(loads[i + 1], '^(%d+) (%d+) (%d+)$')
    load, slots, seen = tonumber(load), tonumber(slots), tonumber(seen)
    if name ~= except and load < slots and now - seen < 1500 and is_live(name)
      and (best == nil or load < best_load) then
      best, best_load = name, load
    end
  end
  return best, best_load
end

-- RQ's record of an ended job; its worker, where it has one, closes RQ's books beside.
local RQ_STATUS = {completed = 'finished', failed = 'failed', cancelled = 'canceled'}
local function expire_rq_job(id, status, ttl_s)
  local key = 'rq:job:' .. id
  if redis.call('TYPE', key).ok == 'hash' then
    redis.call('HSET', key, 'status', RQ_STATUS[status])
    redis.call('EXPIRE', key, ttl_s)
  end
end

-- The one place where a job ends. `totals` is the hash that counts it.
local function end_job(id, totals, status, payload, busy_ms, ttl_s, now)
  local key = job_key(id)
  local created = tonumber(redis.call('HGET', key, 'created_ms')) or now
  redis.call('XADD', stream_key(id), '*', 'k', 'end', 'd', payload)
  redis.call('HSET', key, 'status', status, 'end', payload, 'ended_ms', now)
  redis.call('EXPIRE', key, ttl_s)
  redis.call('EXPIRE', stream_key(id), ttl_s)
  expire_rq_job(id, status, ttl_s)
  redis.call('ZREM', DEADLINES, id)
  redis.call('HINCRBY', totals, 'jobs_' .. status, 1)
  redis.call('HINCRBY', totals, 'e2e_ms', math.max(0, now - created))
  local before = tonumber(redis.call('HGET', key, 'busy_ms')) or 0
  redis.call('HINCRBY', totals, 'busy_ms', busy_ms + before)
  redis.call('HINCRBY', totals, 'ended_tokens', tonumber(redis.call('HGET', key, 'count')) or 0)
end

-- A terminal event for a job that no worker holds; it leaves its queue too.
local function end_without_worker(id, status, reason, code, message, ttl_s, now)
  local key = job_key(id)
  local f = redis.call('HMGET', key, 'queue', 'created_ms', 'started_ms', 'prompt_tokens', 'count',
    'attempt', 'seed', 'first_token_ms')
  local created, started = tonumber(f[2]) or now, tonumber(f[3]) or now
  local err = cjson.null
  if code ~= '' then err = {code = code, message = message} end
  local timings = {queued_s = (started - created) / 1000, total_s = (now - created) / 1000}
  local first = tonumber(f[8] or '')
  if first then timings.ttft_s = (first - created) / 1000 end
  local payload = cjson.encode({
    status = status, finish_reason = reason,
    usage = {prompt_tokens = tonumber(f[4]) or 0, cached_tokens = 0,
      completion_tokens = tonumber(f[5]) or 0},
    timings = timings, error = err, seed = tonumber(f[7]) or 0,
    worker = cjson.null, attempts = tonumber(f[6]) or 0})
  redis.call('LREM', 'rq:queue:' .. f[1], 0, id)
  end_job(id, SERVICE, status, payload, 0, ttl_s, now)
end

-- Back to the front of its queue; the next attempt goes on after the tokens in the stream.
local function requeue(id, now)
  local key = job_key(id)
  local queue = redis.call('HGET', key, 'queue')
  local began = tonumber(redis.call('HGET', key, 'attempt_ms')) or now
  redis.call('HINCRBY', key, 'busy_ms', math.max(0, now - began))
  redis.call('HSET', key, 'worker', '', 'status', 'queued')
  if redis.call('TYPE', 'rq:job:' .. id).ok == 'hash' then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'queued')
  end
  redis.call('LREM', 'rq:queue:' .. queue, 0, id)
  redis.call('LPUSH', 'rq:queue:' .. queue, id)
  local best = least_loaded(redis.call('HGET', key, 'model'), now, nil)
  if best then ring(best) end
end
