"""Matchmaking service: finds four players and seats them."""
