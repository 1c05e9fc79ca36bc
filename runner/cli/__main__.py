"""
`python -m runner.cli`, for a checkout that is not installed.
"""

from __future__ import annotations

from runner.cli import main

if __name__ == "__main__":
    main()
