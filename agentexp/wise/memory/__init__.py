"""What a WISE agent remembers: short-term place and event memory, keyframes, the semantic affordance event graph, retrieval."""
