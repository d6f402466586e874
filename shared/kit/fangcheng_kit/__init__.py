"""What every service needs to run: server, principal, settings, metrics and logs."""
