"""What tests draw with: `CHAOS_SEED` has them draw the same again."""

import os
import random
import secrets

import pytest

CHAOS_SEED = os.environ.get("CHAOS_SEED") or str(secrets.randbelow(2**32))


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    print(f"CHAOS_SEED={CHAOS_SEED}")
    return random.Random(f"{CHAOS_SEED} {request.node.name}")
