-- A question for a worker, beside the jobs. ARGV: model, how long it waits in ms, most that wait, its id,
-- the gateway's id, its kind, the question (JSON). Returns 'asked', 'nobody' (no worker answers) or 'full'.
local list = P .. 'asks:' .. ARGV[1]
if redis.call('EXISTS', P .. 'answerers:' .. ARGV[1]) == 0 then return 'nobody' end
if redis.call('LLEN', list) >= tonumber(ARGV[3]) then return 'full' end
-- Not by cjson: the question goes on as it is, empty lists and large numbers included.
redis.call('RPUSH', list, string.format('{"ask_id":%s,"gateway_id":%s,"deadline_ms":%d,"%s":%s}',
  cjson.encode(ARGV[4]), cjson.encode(ARGV[5]), now_ms() + tonumber(ARGV[2]), ARGV[6], ARGV[7]))
redis.call('PEXPIRE', list, 60000)
return 'asked'
