"""The command line, `mini-vllm`: starts, watches and examines the service; imports shared only."""
