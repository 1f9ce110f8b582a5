"""OpenAI's completions and chat completions: bodies that become jobs, and jobs that become answers."""
