"""Writes docs/metrics.md: ``python -m deploy.observability``."""

from deploy.observability.page import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
