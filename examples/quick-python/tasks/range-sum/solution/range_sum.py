def range_sum(low, high):
    return sum(range(low, high + 1))
