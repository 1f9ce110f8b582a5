-- A job that waits but is in no queue (an operator's `rq empty`, say), or runs on no worker: it goes back,
-- or ends if its request is gone. ARGV: job id, result TTL in s. Returns '' (it was well), requeued or ended.
local id, key = ARGV[1], job_key(ARGV[1])
local f = redis.pcall('HMGET', key, 'status', 'queue', 'model', 'worker', 'end')
if f.err or not (f[1] and f[2] and f[3]) or f[5] then
  redis.call('SREM', OPEN, id)
  return ''
end
if f[1] == 'queued' then
  if redis.call('LPOS', queue_key(f[2]), id) or redis.call('LPOS', suspects_key(f[3]), id) then return '' end
elseif f[4] and redis.call('SISMEMBER', WORKERS, f[4]) == 1 and redis.call('SISMEMBER', taken_key(f[4]), id) == 1 then
  return ''
end
if redis.call('HEXISTS', 'rq:job:' .. id, 'data') == 1 then
  requeue(id, now_ms())
  return 'requeued'
end
end_without_worker(id, 'failed', 'error', 'removed', 'The job was taken out of its queue in Redis.',
  tonumber(ARGV[2]), now_ms())
return 'ended'
