"""``mini-vllm top``: a running service at a glance. What is shown is made of what the gateway says; pure."""
