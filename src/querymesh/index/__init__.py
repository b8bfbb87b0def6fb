"""How state is found: partitions of rows, their indices, and the STeM that holds them."""
