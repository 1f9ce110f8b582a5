"""``mini-vllm tune``: measures layouts under the load they are meant for, and keeps what it chose."""
