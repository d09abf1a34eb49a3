from marshal import dumps, loads


def pairs(value):
    """The pairs of a list as plain tuples of plain numbers and texts. An object of a kind of its own could claim to equal everything."""
    return loads(dumps([tuple(pair) for pair in value]))
