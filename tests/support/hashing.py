from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickPasswordHasher(PBKDF2PasswordHasher):
    """Django's own hasher, without the deliberate slowness."""

    iterations = 1
