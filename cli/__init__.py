"""The `rewarden` command."""
