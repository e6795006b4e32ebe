"""What every test needs: the profile Hypothesis runs with."""

import os

from hypothesis import settings

# The same examples every time and everywhere: a red build is red again on the next machine.
settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=True)
# For a long look by hand: HYPOTHESIS_PROFILE=explore make test ARGS="-m law"
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
