"""Settings of the evaluation service, from FANGCHENG_EVALUATION_*."""

from __future__ import annotations

from pydantic import Field

from fangcheng_kit import Settings


class EvaluationSettings(Settings):
    """See `fangcheng_kit.settings.Settings` for what all services have."""

    max_connection_age_seconds: float = Field(
        30.0,
        ge=0,
        description=(
            "Age, give or take a tenth, at which a connection is closed after its calls, so that "
            "clients look up the replicas again and find new ones; 0: never."
        ),
    )
    threads: int = Field(
        1,
        ge=1,
        le=256,
        description=(
            "Threads for batches, and as many for packed hands. Python runs one at a time but for "
            "compiled kernels: to use more cores, run more processes."
        ),
    )
    most_waiting_hands: int = Field(
        20_000, ge=1_000, description="Hands of batches that may wait; beyond it a call is refused."
    )
    most_waiting_calls: int = Field(
        1_000,
        ge=1,
        description="Calls for a single hand that may wait; beyond it a call is refused.",
    )
    chunk_hands: int = Field(
        32,
        ge=1,
        le=1_000,
        description="Hands of a batch that are done in one go, before others have their turn.",
    )
    most_waiting_packed_hands: int = Field(
        500_000,
        ge=100_000,
        description=(
            "Packed hands that may wait, 72 bytes each; beyond it a call is refused, and a stream "
            "that begins."
        ),
    )
    most_streams: int = Field(
        16,
        ge=1,
        le=10_000,
        description=(
            "Streams of packed hands that are open at a time; beyond it one is refused. What a "
            "client does not read stays here: some 12 MB a stream with 10,000 hands a message, "
            "60 MB with 100,000."
        ),
    )
    chunk_packed_hands: int = Field(
        32_768,
        ge=64,
        le=100_000,
        description=(
            "Packed hands that are done in one go at most, before others have their turn; fewer "
            "where they would take more than 4 ms."
        ),
    )
