"""``mini-vllm bench``: what clients of any server of OpenAI's API get, and how two of them compare."""
