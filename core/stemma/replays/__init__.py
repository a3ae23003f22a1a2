"""A log of requests, put to policies: what each would have served, and how much of it wrongly."""
