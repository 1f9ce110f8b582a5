-- ARGV: id. Returns the status from now on: cancelling, where it could still be cancelled.
local key = batch_key(ARGV[1])
local status = redis.call('HGET', key, 'status')
if status == 'validating' or status == 'in_progress' then
  redis.call('HSET', key, 'status', 'cancelling', 'cancelling_at', math.floor(now_ms() / 1000))
  return 'cancelling'
end
return status or ''
