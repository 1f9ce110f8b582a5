"""The report of `mini-vllm experiment all`: a page that needs nothing beside itself, and Markdown."""
