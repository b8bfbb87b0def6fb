"""QueryMesh's laboratory: benchmarks, and the papers' experiments on this engine."""
