-- A delivery that is no job's. ARGV: its id, URL, type, data (JSON), how long it is kept in s.
put_webhook(ARGV[1], ARGV[2], ARGV[3], '', ARGV[4], ARGV[5], now_ms())
