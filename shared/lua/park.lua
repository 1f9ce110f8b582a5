-- A draining worker gives a job back. ARGV: incarnation, job id, attempt. Returns 1 if it was its own.
local me, id = ARGV[1], ARGV[2]
local f = redis.call('HMGET', job_key(id), 'attempt', 'worker', 'end', 'model')
redis.call('SREM', taken_key(me), id)
if f[3] or f[1] ~= ARGV[3] or f[2] ~= me then return 0 end
-- It runs no more suspects: another's turn.
if redis.call('GET', ward_key(f[4])) == me then redis.call('DEL', ward_key(f[4])) end
requeue(id, now_ms())
return 1
