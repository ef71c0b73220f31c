"""One forward step of a dense Llama-like decoder in a single call."""

from engine.kernels.decoder_step.arguments import Buffers, Inputs, Shape, Weights
from engine.kernels.decoder_step.decode_loop_cpu import DecodeLoop, Going
from engine.kernels.decoder_step.step_cpu import DecoderStep, phases

__all__ = ["Buffers", "DecodeLoop", "DecoderStep", "Going", "Inputs", "Shape", "Weights", "phases"]
