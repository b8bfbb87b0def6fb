from querymesh.fabric.token import OUTPUT, RouteToken


def test_a_token_is_popped_operator_by_operator_and_ends_at_the_output():
    token = RouteToken((3, 2, 1))
    visited = []
    while token.top != OUTPUT:
        visited.append(token.top)
        token = token.pop()
    assert visited == [3, 2, 1]
    assert str(token) == "<>"
