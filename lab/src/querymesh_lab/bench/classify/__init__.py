"""What telling kinds apart is worth: folding, classifiers, and tuples that follow others."""
