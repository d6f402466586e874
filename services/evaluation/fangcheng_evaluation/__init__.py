"""Evaluation service: analyses hands and scores finished ones. Stateless."""
