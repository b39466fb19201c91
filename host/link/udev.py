"""The rule that lets a user open boards, and how it is installed."""

from importlib.resources import files

__all__ = ["RULE", "install_rule"]

RULE = "70-hypermon.rules"


def install_rule() -> str:
    """The command that installs the rule included in this package."""
    rule = files("hypermon.host.link") / RULE
    return f"sudo cp {rule} /etc/udev/rules.d/ && sudo udevadm control --reload && sudo udevadm trigger"
