"""Inter prediction: reference planes, vectors, direct prediction, weights, on a CPU."""
