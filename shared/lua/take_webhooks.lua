-- Deliveries that are due, for whoever sends them: they come due again when the lease is over.
-- ARGV: lease in ms, most of them, most to one host at once, then the hosts that are being sent to.
-- Returns rows of {id, attempt, URL, type, when it ended in ms, job id or '', data or ''}.
local now, taken, num_busy = now_ms(), {}, {}
for i = 4, #ARGV do num_busy[ARGV[i]] = (num_busy[ARGV[i]] or 0) + 1 end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', WEBHOOKS, '-inf', now, 'LIMIT', 0, 200)) do
  if #taken >= tonumber(ARGV[2]) then break end
  local key = webhook_key(id)
  local f = {}
  if redis.call('TYPE', key).ok == 'hash' then
    f = redis.call('HMGET', key, 'url', 'type', 'ended_ms', 'job', 'data', 'attempts')
  end
  local host = string.lower(string.match(f[1] or '', '^%a+://([^/?#]+)') or '')
  if host == '' then
    redis.call('ZREM', WEBHOOKS, id)  -- it has expired
  elseif (num_busy[host] or 0) >= tonumber(ARGV[3]) then
    redis.call('ZADD', WEBHOOKS, now + 500, id)  -- out of the way of the others
  else
    num_busy[host] = (num_busy[host] or 0) + 1
    redis.call('ZADD', WEBHOOKS, now + ARGV[1], id)
    local attempt = string.format('%d', (whole(f[6]) or 0) + 1)
    redis.call('HSET', key, 'attempts', attempt)
    taken[#taken + 1] = {id, attempt, f[1], f[2] or '', f[3] or '', f[4] or '', f[5] or ''}
  end
end
return taken
