-- A worker could not start. ARGV: its name, what it says (a JSON object without `at`), how long that is
-- kept in s, how many of them are kept
local now_s, ttl_s = now_ms() / 1000, tonumber(ARGV[3])
if redis.call('TYPE', FAILURES).ok ~= 'hash' then redis.call('DEL', FAILURES) end
redis.call('HSET', FAILURES, ARGV[1], string.sub(ARGV[2], 1, -2) .. string.format(',"at":%.3f}', now_s))
redis.call('EXPIRE', FAILURES, ttl_s)
-- Names of containers change: without a bound, a crash loop would fill the memory of Redis.
local fields, kept = redis.call('HGETALL', FAILURES), {}
for i = 1, #fields, 2 do
  local at = tonumber(string.match(fields[i + 1], '"at":(%d+%.%d+)}$') or '') or 0
  if fields[i] == ARGV[1] then
    -- It has just been written.
  elseif at < now_s - ttl_s or at > now_s + ttl_s then
    redis.call('HDEL', FAILURES, fields[i])
  else
    kept[#kept + 1] = {at, fields[i]}
  end
end
table.sort(kept, function(one, other) return one[1] > other[1] end)
for i = tonumber(ARGV[4]), #kept do redis.call('HDEL', FAILURES, kept[i][2]) end
return 1
