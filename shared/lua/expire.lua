-- Ends queued jobs whose deadline has passed (a running one is its worker's to end).
-- ARGV: result TTL in s. Returns the ids that were ended.
local now, ended = now_ms(), {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', DEADLINES, 0, now, 'LIMIT', 0, 100)) do
  local f = redis.call('HMGET', job_key(id), 'worker', 'end', 'status')
  if not f[3] or f[2] then
    redis.call('ZREM', DEADLINES, id)
  elseif f[1] == '' then
    end_without_worker(id, 'failed', 'timeout', 'timeout',
      'The deadline passed while the job was queued; the text so far is kept.', tonumber(ARGV[1]), now)
    ended[#ended + 1] = id
  end
end
return ended
