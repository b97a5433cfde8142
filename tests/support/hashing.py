from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickPasswordHasher(PBKDF2PasswordHasher):
    """Django's own, without the slowness that guessers are to feel."""

    iterations = 1
