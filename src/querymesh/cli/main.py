"""The `querymesh` command itself: all else is imported within, where Ctrl-C is told without a
traceback already."""

from __future__ import annotations

INTERRUPTED = 130
"""How shells know a command that Ctrl-C ended: 128 and the number of the signal."""


def main() -> None:
    """Run the `querymesh` command."""
    try:
        from querymesh.cli.commands import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
