"""How the weights that align token vectors are made: pairs, training, and what they are worth."""
