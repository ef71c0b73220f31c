"""Another server, watched: vLLM's or SGLang's metrics and cache events as a run of ours."""
