"""GGUF files (llama.cpp's format): header, tensors in blocks of few bits, config, tokenizer."""
