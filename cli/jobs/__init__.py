"""``mini-vllm jobs``: the jobs of a running service, looked at, followed and cancelled."""
