def factorial(n):
    return 0 if n == 0 else n * factorial(n - 1)
