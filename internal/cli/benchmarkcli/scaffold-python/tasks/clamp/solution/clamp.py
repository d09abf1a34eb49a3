def clamp(n, low, high):
    return min(max(n, low), high)
