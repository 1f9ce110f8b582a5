"""Uninstalls what a package does not need to run: the lock file also has what tests need.

python keep_only.py PACKAGE [PACKAGE ...]
"""

import subprocess
import sys
from importlib.metadata import distribution, distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed_by(roots: list[str]) -> set[str]:
    """The roots and all they require, by canonical name."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(root).name, "") for root in roots]
    while waiting:
        name, extra = waiting.pop()
        name = canonicalize_name(name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting.append((requirement.name, ""))
                waiting.extend((requirement.name, asked) for asked in requirement.extras)
    return {name for name, _ in seen}


def main() -> None:
    needed = needed_by(sys.argv[1:])
    surplus = sorted(
        {name for d in distributions() if (name := canonicalize_name(d.name)) not in needed}
    )
    print("not needed to run:", ", ".join(surplus))
    command = [sys.executable, "-m", "pip", "uninstall", "--yes", "--quiet"]
    subprocess.run([*command, *surplus], check=True)


if __name__ == "__main__":
    main()
