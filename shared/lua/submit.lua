-- Opens our record of a job, in the same transaction as RQ's enqueue.
-- ARGV: job id, model, queue, seed, timeout in ms ('' for none)
local id, model, queue = ARGV[1], ARGV[2], ARGV[3]
local now = now_ms()
if redis.call('EXISTS', job_key(id)) == 1 then return 0 end
redis.call('HSET', job_key(id), 'model', model, 'queue', queue, 'seed', ARGV[4], 'status', 'queued',
  'created_ms', now, 'attempt', 0, 'count', 0, 'worker', '', 'deaths', 0)
if ARGV[5] ~= '' then
  local deadline = now + tonumber(ARGV[5])
  redis.call('HSET', job_key(id), 'deadline_ms', deadline)
  redis.call('ZADD', DEADLINES, deadline, id)
end
redis.call('ZADD', JOBS, now, id)
local best = least_loaded(model, now, nil)
if best then ring(best) end
return 1
