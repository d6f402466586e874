"""Wallet service: accounts, holds and settlement in double entry."""
