-- After a lost reply: jobs that stand as taken by this worker but that it does not know go back.
-- ARGV: incarnation, then the job ids it knows. Returns the ids that went back.
local me, known, back = ARGV[1], {}, {}
for i = 2, #ARGV do known[ARGV[i]] = true end
for _, id in ipairs(redis.call('SMEMBERS', taken_key(me))) do
  if not known[id] then
    redis.call('SREM', taken_key(me), id)
    local f = redis.call('HMGET', job_key(id), 'worker', 'end')
    if f[1] == me and not f[2] then
      requeue(id, now_ms())
      back[#back + 1] = id
    end
  end
end
return back
