"""Statistics of samples and running queries: profiles, decayed means, histograms, drift."""
