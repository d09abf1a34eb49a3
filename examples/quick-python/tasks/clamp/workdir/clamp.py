def clamp(n, low, high):
    return max(low, high)
