"""`querymesh bench costly`: predicates that are models or remote calls, and who asks them least."""
