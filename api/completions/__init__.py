"""OpenAI's completions and chat completions: their bodies as jobs, and what became of those as their answers."""
