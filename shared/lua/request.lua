-- Counts a request of an owner, unless it has had its share of the last minute.
-- ARGV: owner, requests per minute. Returns 0, or in how many ms the next one may come.
local key, most = requests_key(ARGV[1]), tonumber(ARGV[2])
local now = now_ms()
local oldest = tonumber(redis.call('LINDEX', key, most - 1) or '')
if oldest and now - oldest < 60000 then
  count(SERVICE, '', 'refused_rate_limited', 1)
  return 60000 - (now - oldest)
end
redis.call('LPUSH', key, now)
redis.call('LTRIM', key, 0, most - 1)
redis.call('PEXPIRE', key, 60000)
return 0
