"""Table service: plays hands, keeps their journal and settles them."""
