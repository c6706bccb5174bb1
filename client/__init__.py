"""Rewards for a trainer: one client over three ways to reach the graders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .async_client import AsyncRewardClient
    from .reward_client import RewardClient

__all__ = ["AsyncRewardClient", "RewardClient"]


def __getattr__(name: str) -> Any:
    # Made when first asked for: services import `client.transport` alone.
    if name == "RewardClient":
        from .reward_client import RewardClient

        return RewardClient
    if name == "AsyncRewardClient":
        from .async_client import AsyncRewardClient

        return AsyncRewardClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
