def largest(numbers):
    return numbers[0]
