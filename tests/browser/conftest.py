"""The browser tests are a command of their own: make test-browser."""

import os

if os.environ.get("HELDOUT_TEST_BROWSER") == "1":
    from tests.browser.browsing import browser, live, ready, sign_in, watch

    __all__ = ["browser", "live", "ready", "sign_in", "watch"]
else:
    collect_ignore_glob = ["*.py"]
