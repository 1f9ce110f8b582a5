-- Ends queued jobs whose deadline has passed (a running one is its worker's to end, and is not in the
-- list). ARGV: result TTL in s. Returns how many it looked at, at most 100, and the ids that were ended.
local now, ended = now_ms(), {}
local overdue = redis.call('ZRANGEBYSCORE', DEADLINES, 0, now, 'LIMIT', 0, 100)
for _, id in ipairs(overdue) do
  redis.call('ZREM', DEADLINES, id)
  local f = redis.pcall('HMGET', job_key(id), 'worker', 'end', 'status', 'queue', 'model')
  if not f.err and f[1] == '' and not f[2] and f[3] and f[4] and f[5] then
    end_without_worker(id, 'failed', 'timeout', 'timeout',
      'The deadline passed while the job was queued; the text so far is kept.', tonumber(ARGV[1]), now)
    ended[#ended + 1] = id
  end
end
return {#overdue, ended}
