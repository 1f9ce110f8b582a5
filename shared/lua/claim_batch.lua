-- A gateway takes a batch that nobody holds. ARGV: id, how long in ms it holds it.
-- Returns its fence, which is larger than all before, or 0 if it does not get it.
local id = ARGV[1]
local key, lease = batch_key(id), batch_lease_key(id)
if redis.call('HEXISTS', key, 'status') == 0 then
  redis.call('SREM', OPEN_BATCHES, id)
  return 0
end
if redis.call('EXISTS', lease) == 1 then return 0 end
local fence = redis.call('HINCRBY', key, 'fence', 1)
redis.call('SET', lease, fence, 'PX', ARGV[2])
return fence
