-- A job is admitted, or refused: RQ's job, our record and the place in the queue in one move.
-- ARGV: job id, model, queue, seed, timeout in ms ('' for none), owner ('' for none), characters of
-- prompt, digest of the body ('' where it does not matter), most queued jobs, most queued characters,
-- most queued jobs of one owner (0: no limit), how long ago in ms a worker must have been there, a note
-- for the gateways ('' for none), where to tell of the end ('' for nowhere), then RQ's fields of the
-- job, name and value.
-- Returns {accepted, position, when it was made}, {same, status, queue, seed, when it was made, note},
-- {conflict}, {memory}, {no_worker}, or {jobs | chars | owner, how many there are, jobs that wait, mean
-- time of service in ms, slots}.
local id, model, queue, owner, chars, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[6], tonumber(ARGV[7]), ARGV[8]
local now = now_ms()

local old = redis.call('HMGET', job_key(id), 'body', 'status', 'queue', 'seed', 'created_ms', 'note')
if old[2] then
  if old[1] ~= digest then return {'conflict'} end
  return {'same', old[2], old[3], old[4], old[5], old[6] or ''}
end
local memory = redis.call('INFO', 'memory')
local used = tonumber(string.match(memory, 'used_memory:(%d+)'))
local most = tonumber(string.match(memory, 'maxmemory:(%d+)'))
-- The rest is for the tokens of what was accepted.
if most > 0 and used > 0.9 * most then
  count(SERVICE, model, 'refused_redis_full', 1)
  return {'memory'}
end
local served = whole(redis.call('HGET', SERVED, model))
if not served or now - served > tonumber(ARGV[12]) then
  count(SERVICE, model, 'refused_no_worker_ready', 1)
  return {'no_worker'}
end

local ahead, waiting = 0, redis.call('LLEN', suspects_key(model))
local is_behind = false
for _, priority in ipairs({'high', 'normal', 'low'}) do
  local length = redis.call('LLEN', queue_key(model .. ':' .. priority))
  waiting = waiting + length
  if not is_behind then ahead = ahead + length end
  if queue == model .. ':' .. priority then is_behind = true end
end
local function refusal(what, number)
  count(SERVICE, model, what == 'owner' and 'refused_too_many_jobs' or 'refused_queue_full', 1)
  local times, sum, slots = redis.call('LRANGE', service_key(model), 0, -1), 0, 0
  for _, ms in ipairs(times) do sum = sum + (whole(ms) or 0) end
  local loads = redis.call('HGETALL', load_key(model))
  for i = 1, #loads, 2 do
    if is_live(loads[i]) then slots = slots + (tonumber(string.match(loads[i + 1], ' (%d+) ') or '') or 0) end
  end
  return {what, number, waiting, #times > 0 and math.ceil(sum / #times) or 0, slots}
end
if waiting == 0 then redis.call('HDEL', WAITING, 'chars:' .. model) end
local num_chars = whole(redis.call('HGET', WAITING, 'chars:' .. model)) or 0
local num_owned = whole(redis.call('HGET', WAITING, 'jobs:' .. owner)) or 0
if waiting >= tonumber(ARGV[9]) then return refusal('jobs', waiting) end
-- A prompt always fits into an empty queue.
if waiting > 0 and num_chars + chars > tonumber(ARGV[10]) then return refusal('chars', num_chars) end
if owner ~= '' and tonumber(ARGV[11]) > 0 and num_owned >= tonumber(ARGV[11]) then
  return refusal('owner', num_owned)
end

redis.call('DEL', stream_key(id), 'rq:job:' .. id)
redis.call('HSET', 'rq:job:' .. id, unpack(ARGV, 15))
redis.call('HSET', job_key(id), 'model', model, 'queue', queue, 'seed', ARGV[4], 'status', 'queued',
  'created_ms', now, 'attempt', 0, 'count', 0, 'worker', '', 'deaths', 0, 'chars', chars)
if digest ~= '' then redis.call('HSET', job_key(id), 'body', digest) end
if ARGV[13] ~= '' then redis.call('HSET', job_key(id), 'note', ARGV[13]) end
if ARGV[14] ~= '' then redis.call('HSET', job_key(id), 'webhook', ARGV[14]) end
if ARGV[5] ~= '' then redis.call('HSET', job_key(id), 'deadline_ms', now + tonumber(ARGV[5])) end
redis.call('ZADD', JOBS, now, id)
redis.call('SADD', OPEN, id)
if owner ~= '' then
  redis.call('HSET', job_key(id), 'owner', owner)
  redis.call('SADD', P .. 'owners', owner)
  redis.call('ZADD', JOBS .. ':' .. owner, now, id)
end
count_waiting(id, 1)
redis.call('SADD', 'rq:queues', queue_key(queue))
redis.call('RPUSH', queue_key(queue), id)
ring_least_loaded(model, now)
return {'accepted', ahead + 1, now}
