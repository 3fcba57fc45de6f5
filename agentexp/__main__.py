"""`python -m agentexp`."""

from agentexp.cli import main

main()
