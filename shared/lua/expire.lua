-- Ends queued jobs whose deadline has passed (a running one is its worker's to end, and is not in the
-- list). ARGV: result TTL in s. Returns the ids that were ended.
local now, ended = now_ms(), {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', DEADLINES, 0, now, 'LIMIT', 0, 100)) do
  local f = redis.call('HMGET', job_key(id), 'worker', 'end', 'status')
  if f[1] == '' and not f[2] and f[3] then
    end_without_worker(id, 'failed', 'timeout', 'timeout',
      'The deadline passed while the job was queued; the text so far is kept.', tonumber(ARGV[1]), now)
    ended[#ended + 1] = id
  end
  redis.call('ZREM', DEADLINES, id)
end
return ended
