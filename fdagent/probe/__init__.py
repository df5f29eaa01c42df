"""Looking before starting: is everything there that an agent relies on?"""
