-- Names (see shared/keys.py) and the moves that several scripts share. Prepended to every script.
local P = 'mini-vllm:'
local function job_key(id) return P .. 'job:' .. id end
local function stream_key(id) return P .. 'stream:' .. id end
local function totals_key(incarnation) return P .. 'worker-totals:' .. incarnation end
local function taken_key(incarnation) return P .. 'taken:' .. incarnation end
local function beat_key(incarnation) return P .. 'beat:' .. incarnation end
local function load_key(name) return P .. 'load:' .. name end
local function ward_key(name) return P .. 'ward:' .. name end
local function alone_key(name) return P .. 'alone:' .. name end
local function passed_key(name) return P .. 'passed:' .. name end
local function service_key(name) return P .. 'service-ms:' .. name end
local function bell_key(name) return P .. 'bell:' .. name end
local function worker_key(name) return P .. 'worker:' .. name end
local function requests_key(name) return P .. 'requests:' .. name end
local function queue_key(name) return 'rq:queue:' .. name end
local function suspects_key(model) return 'rq:queue:' .. model .. ':suspect' end
local WORKERS, SERVICE, DEADLINES, JOBS = P .. 'workers', P .. 'totals', P .. 'deadlines', P .. 'jobs'
local WAITING, SERVED, NEWS, OPEN = P .. 'waiting', P .. 'served', P .. 'news', P .. 'open'
local FAILURES, WEBHOOKS = P .. 'failures', P .. 'webhooks'
local function webhook_key(id) return P .. 'webhook:' .. id end
local BATCHES, OPEN_BATCHES = P .. 'batches', P .. 'open-batches'
local function batch_key(id) return P .. 'batch:' .. id end
local function batch_lease_key(id) return P .. 'batch-lease:' .. id end
local function file_readers_key(id) return P .. 'file-readers:' .. id end
-- More entries than a job can have tokens (shared/settings.py): no legitimate one reaches it.
local MAX_STREAM_ENTRIES = 1100000

-- What stands in Redis may be anything: a number is one of ours, or nil.
local function whole(text)
  return text and #text <= 15 and tonumber(string.match(text, '^%d+$') or '') or nil
end

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function is_live(incarnation)
  return redis.call('SISMEMBER', WORKERS, incarnation) == 1
    and redis.call('EXISTS', beat_key(incarnation)) == 1
end

local function ring(incarnation)
  local bell = bell_key(incarnation)
  if redis.call('LLEN', bell) == 0 then
    redis.call('LPUSH', bell, '1')
    redis.call('EXPIRE', bell, 60)
  end
end

-- Upper bounds in ms of the histograms that are counted here, where what they tell of happens, once
-- (shared/histograms.py has them in s; a test keeps the two in line).
local FIRST_TOKEN_MS = {1, 5, 10, 20, 40, 60, 80, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000, 20000,
  40000, 80000, 160000, 640000, 2560000}
local REQUEST_MS = {300, 500, 800, 1000, 1500, 2000, 2500, 5000, 10000, 15000, 20000, 30000, 40000, 50000,
  60000, 120000, 240000, 480000, 960000, 1920000, 7680000}
local BOUNDS_MS = {ttft = FIRST_TOKEN_MS, e2e = REQUEST_MS, queue = REQUEST_MS, prefill = REQUEST_MS,
  decode = REQUEST_MS}

-- `totals` is a hash of totals; what is no number is not observed.
local function observe(totals, model, name, ms)
  if not model or type(ms) ~= 'number' or ms ~= ms or ms >= 1e12 then return end
  local bounds, bucket = BOUNDS_MS[name], 0
  ms = math.max(0, ms)
  while bounds[bucket + 1] and ms > bounds[bucket + 1] do bucket = bucket + 1 end
  local field = 'h|' .. model .. '|' .. name .. '|'
  redis.call('HINCRBY', totals, field .. bucket, 1)
  redis.call('HINCRBY', totals, field .. 'sum_us', string.format('%.0f', ms * 1000))
end

local function count(totals, model, name, amount)
  if model then redis.call('HINCRBY', totals, 'c|' .. model .. '|' .. name, amount) end
end

-- Tells the gateways which jobs have new events; they read those from the jobs' own streams.
local function tell(ids)
  redis.call('XADD', NEWS, 'MAXLEN', '~', 5000, '*', 'j', ids)
end

local function append_event(id, kind, payload)
  redis.call('XADD', stream_key(id), 'MAXLEN', '~', MAX_STREAM_ENTRIES, '*', 'k', kind, 'd', payload)
end

-- The worker of this model that should take the next job: live, seen of late, with a free slot,
-- least loaded. Its load, or nil where there is none.
local function least_loaded(model, now, except)
  local loads = redis.call('HGETALL', load_key(model))
  local best, best_load = nil, nil
  for i = 1, #loads, 2 do
    local name = loads[i]
    local load, slots, seen = string.match(loads[i + 1], '^(%d+) (%d+) (%d+)$')
    load, slots, seen = tonumber(load), tonumber(slots), tonumber(seen)
    if load and name ~= except and load < slots and now - seen < 1500 and is_live(name)
      and (best == nil or load < best_load) then
      best, best_load = name, load
    end
  end
  return best, best_load
end

local function ring_least_loaded(model, now)
  local best = least_loaded(model, now, nil)
  if best then ring(best) end
end

-- What waits, by model and by owner, and the deadlines that are the queue's to watch.
local function add_to(field, amount)
  if redis.call('HINCRBY', WAITING, field, amount) <= 0 then redis.call('HDEL', WAITING, field) end
end

local function count_waiting(id, sign)
  local f = redis.call('HMGET', job_key(id), 'model', 'owner', 'chars', 'deadline_ms')
  add_to('chars:' .. (f[1] or ''), sign * (whole(f[3]) or 0))
  if f[2] and f[2] ~= '' then add_to('jobs:' .. f[2], sign) end
  if sign < 0 then
    redis.call('ZREM', DEADLINES, id)
  elseif whole(f[4]) then
    redis.call('ZADD', DEADLINES, f[4], id)
  end
end

-- RQ's record of an ended job; its worker, where it has one, closes RQ's books beside.
-- The request is no longer kept: it may be large, and nobody reads it again.
local RQ_STATUS = {completed = 'finished', failed = 'failed', cancelled = 'canceled'}
local NO_REQUEST = '["mini_vllm.generate", null, [], {}]'
local function expire_rq_job(id, status, ttl_s)
  local key = 'rq:job:' .. id
  if redis.call('TYPE', key).ok == 'hash' then
    redis.call('HSET', key, 'status', RQ_STATUS[status] or 'failed', 'data', NO_REQUEST)
    redis.call('EXPIRE', key, ttl_s)
  end
end

-- Something to tell at a URL, due now. Again with the same id does nothing: it is the same delivery.
local function put_webhook(id, url, kind, job, data, ttl_s, now)
  local key = webhook_key(id)
  if redis.call('EXISTS', key) == 1 then return end
  redis.call('HSET', key, 'url', url, 'type', kind, 'job', job, 'data', data, 'ended_ms', now, 'attempts', 0)
  redis.call('EXPIRE', key, ttl_s)
  redis.call('ZADD', WEBHOOKS, now, id)
end

local REASONS = {stop = 1, length = 1, cancelled = 1, timeout = 1, error = 1}
local function observe_end(totals, model, payload, e2e_ms)
  observe(totals, model, 'e2e', e2e_ms)
  local is_read, event = pcall(cjson.decode, payload)
  if not is_read or type(event) ~= 'table' then return end
  if REASONS[event.finish_reason] then count(totals, model, 'ended_' .. event.finish_reason, 1) end
  local timings = type(event.timings) == 'table' and event.timings or {}
  for _, name in ipairs({'prefill', 'decode'}) do
    local s = timings[name .. '_s']
    if type(s) == 'number' then observe(totals, model, name, s * 1000) end
  end
end

-- The one place where a job ends. `totals` is the hash that counts it.
local function end_job(id, totals, status, payload, busy_ms, ttl_s, now)
  local key = job_key(id)
  local f = redis.call('HMGET', key, 'created_ms', 'busy_ms', 'count', 'model', 'webhook')
  append_event(id, 'end', payload)
  redis.call('HSET', key, 'status', status, 'end', payload, 'ended_ms', now)
  redis.call('SREM', OPEN, id)
  redis.call('EXPIRE', key, ttl_s)
  redis.call('EXPIRE', stream_key(id), ttl_s)
  expire_rq_job(id, status, ttl_s)
  if f[5] then put_webhook('job_' .. id, f[5], 'job.' .. status, id, '', ttl_s, now) end
  busy_ms = busy_ms + (whole(f[2]) or 0)
  redis.call('HINCRBY', totals, 'jobs_' .. status, 1)
  redis.call('HINCRBY', totals, 'e2e_ms', math.max(0, now - (whole(f[1]) or now)))
  observe_end(totals, f[4], payload, now - (whole(f[1]) or now))
  redis.call('HINCRBY', totals, 'busy_ms', busy_ms)
  redis.call('HINCRBY', totals, 'ended_tokens', whole(f[3]) or 0)
  if status == 'completed' and f[4] then
    local recent = service_key(f[4])
    redis.call('LPUSH', recent, busy_ms)
    redis.call('LTRIM', recent, 0, 63)
  end
end

-- A terminal event for a job that no worker holds; it leaves its queue too.
local function end_without_worker(id, status, reason, code, message, ttl_s, now)
  local key = job_key(id)
  local f = redis.call('HMGET', key, 'queue', 'created_ms', 'started_ms', 'prompt_tokens', 'count',
    'attempt', 'seed', 'first_token_ms', 'model', 'status')
  local created, started = whole(f[2]) or now, whole(f[3]) or now
  local err = cjson.null
  if code ~= '' then err = {code = code, message = message} end
  local timings = {queued_s = (started - created) / 1000, total_s = (now - created) / 1000}
  local first = whole(f[8])
  if first then timings.ttft_s = (first - created) / 1000 end
  local payload = cjson.encode({
    status = status, finish_reason = reason,
    usage = {prompt_tokens = whole(f[4]) or 0, cached_tokens = 0, completion_tokens = whole(f[5]) or 0},
    timings = timings, error = err, seed = math.min(whole(f[7]) or 0, 4294967294),
    worker = cjson.null, attempts = whole(f[6]) or 0})
  if f[1] then redis.call('LREM', queue_key(f[1]), 0, id) end
  if f[9] then redis.call('LREM', suspects_key(f[9]), 0, id) end
  if f[10] == 'queued' then count_waiting(id, -1) end
  end_job(id, SERVICE, status, payload, 0, ttl_s, now)
  tell(id)
end

-- Back to the front of its queue; the next attempt goes on after the tokens in the stream. A suspect,
-- of which too many workers died, waits apart until a worker runs it alone.
local function requeue(id, now)
  local key = job_key(id)
  local f = redis.call('HMGET', key, 'queue', 'attempt_ms', 'model', 'suspect', 'status')
  redis.call('HINCRBY', key, 'busy_ms', math.max(0, now - (whole(f[2]) or now)))
  redis.call('HSET', key, 'worker', '', 'status', 'queued')
  if redis.call('TYPE', 'rq:job:' .. id).ok == 'hash' then
    redis.call('HSET', 'rq:job:' .. id, 'status', 'queued')
  end
  local list = queue_key(f[1])
  if f[4] then
    list = suspects_key(f[3])
    redis.call('SADD', 'rq:queues', list)
  end
  redis.call('LREM', queue_key(f[1]), 0, id)
  redis.call('LREM', suspects_key(f[3]), 0, id)
  redis.call('LPUSH', list, id)
  if f[5] ~= 'queued' then count_waiting(id, 1) end
  ring_least_loaded(f[3], now)
end
