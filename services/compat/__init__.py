"""The endpoints that trainers already call, in their exact shape."""

from __future__ import annotations

from . import llama_factory, nemo_gym, openrlhf, slime, vllm

routers = [openrlhf.router, slime.router, nemo_gym.router, llama_factory.router, vllm.router]
"""What the app includes. `/score` is vLLM's; `/v1/score`, which vLLM has too, is the service's own."""
