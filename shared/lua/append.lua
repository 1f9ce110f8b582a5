-- One step's events of one worker. Exactly once: an entry that was written before is skipped.
-- ARGV: incarnation, result TTL in s, then 8 per entry: job id, attempt, kind (check, start, token,
-- end), index of the first token (of an end: how many came before), number of tokens, payload, status,
-- busy time in ms
-- Returns 'buried', or pairs [id, verdict] for jobs that must stop: fenced, ended, cancelled.
local me, ttl_s = ARGV[1], tonumber(ARGV[2])
if redis.call('SISMEMBER', WORKERS, me) == 0 then return 'buried' end
local now, totals, verdicts, written = now_ms(), totals_key(me), {}, {}
for i = 3, #ARGV, 8 do
  local id, attempt, kind = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local index, num, payload = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]), ARGV[i + 5]
  local key = job_key(id)
  local f = redis.call('HMGET', key, 'attempt', 'worker', 'end', 'count', 'cancel', 'model')
  if f[3] then
    verdicts[#verdicts + 1] = {id, 'ended'}
  elseif f[1] ~= attempt or f[2] ~= me then
    verdicts[#verdicts + 1] = {id, 'fenced'}
  else
    if kind == 'start' then
      if redis.call('HSETNX', key, 'prompt_tokens', num) == 1 then
        append_event(id, 'start', payload)
        written[#written + 1] = id
        redis.call('HINCRBY', totals, 'prompt_tokens', num)
        count(totals, f[6], 'prompt_tokens', num)
      end
    elseif (kind == 'token' or kind == 'end') and index > (whole(f[4]) or 0) then
      -- Redis lost what it had taken: another attempt goes on where the stream really ends.
      redis.call('SREM', taken_key(me), id)
      requeue(id, now)
      verdicts[#verdicts + 1] = {id, 'fenced'}
    elseif kind == 'token' and index == whole(f[4]) then
      append_event(id, 'token', payload)
      written[#written + 1] = id
      redis.call('HSET', key, 'count', index + num)
      if redis.call('HSETNX', key, 'first_token_ms', now) == 1 then
        local created = whole(redis.call('HGET', key, 'created_ms'))
        if created then observe(totals, f[6], 'ttft', now - created) end
      end
      redis.call('HINCRBY', totals, 'generated_tokens', num)
      count(totals, f[6], 'generation_tokens', num)
    elseif kind == 'end' then
      end_job(id, totals, ARGV[i + 6], payload, tonumber(ARGV[i + 7]), ttl_s, now)
      written[#written + 1] = id
      redis.call('SREM', taken_key(me), id)
    end
    if f[5] and kind ~= 'end' and redis.call('HGET', key, 'worker') == me then verdicts[#verdicts + 1] = {id, 'cancelled'} end
  end
end
if #written > 0 then tell(table.concat(written, ' ')) end
return verdicts
